"""A study: comparisons of networks on tasks, and the trainings that they need."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from experiments.paper.plan import Contender, Setting, Trial

Keys = Mapping[str, tuple[str, ...]]  #: task -> contenders


@dataclass(frozen=True)
class Study:
    """A list of comparisons.

    Attributes:
        name: of the preset.
        settings: task -> setting.
        contenders: key -> network.
        scaling: task -> contenders that are compared for all sizes and seeds.
        ablations: task -> contenders that are compared at the middle size.
    """

    name: str
    settings: Mapping[str, Setting]
    contenders: Mapping[str, Contender]
    scaling: Keys
    ablations: Keys

    def only(self, keys: Sequence[str]) -> Study:
        """The same study of these contenders, and of those whose learning rates they use."""
        if unknown := [key for key in keys if key not in self.contenders]:
            raise ValueError(
                f"unknown model {unknown[0]!r} of the study: choose from "
                f"{', '.join(self.contenders)}"
            )
        wanted = {*keys, *(self.contenders[key].rate_of for key in keys)}

        def restricted(compared: Keys) -> Keys:
            return {t: tuple(key for key in keys if key in wanted) for t, keys in compared.items()}

        return replace(self, scaling=restricted(self.scaling), ablations=restricted(self.ablations))

    def tuning(
        self,
        task: str,
        errors: Mapping[str, Mapping[float, float]] | None = None,
        parts: Collection[str] = ("scaling", "ablations"),
    ) -> list[Trial]:
        """The trainings by which learning rates are chosen.

        Args:
            task: which.
            errors: contender -> rate -> error on the validation split, of those that were tried.
                What has to be tried next depends on them.
            parts: of the study, for whose contenders rates are needed.
        """
        setting, errors = self.settings[task], errors or {}
        keys = list(self.scaling[task])
        keys += self.ablations.get(task, ()) if "ablations" in parts else ()
        searched = [key for key in dict.fromkeys(keys) if not self.contenders[key].rate_of]
        return [
            Trial(setting, key, self.contenders[key], setting.tuned_on, rate, 0)
            for key in searched
            for rate in setting.rates_to_try(errors.get(key, {}))
        ]

    def trials(self, task: str, rates: Mapping[str, float], part: str) -> list[Trial]:
        """The trainings of a part, of the contenders whose learning rates are known.

        Args:
            task: which.
            rates: contender -> learning rate.
            part: one of `experiments.paper.PARTS`.
        """
        setting = self.settings[task]
        keys, sizes = self.scaling[task], setting.sizes
        if part == "ablations":
            keys, sizes = self.ablations.get(task, ()), (setting.tuned_on,)
        elif part == "time":
            keys, sizes = tuple(k for k in keys if k in setting.step_factors), (max(sizes),)
        keys = tuple(k for k in keys if (self.contenders[k].rate_of or k) in rates)
        return [
            Trial(
                setting,
                key,
                self.contenders[key],
                size,
                rates[self.contenders[key].rate_of or key],
                seed,
                setting.step_factors[key] if part == "time" else 1,
            )
            for seed in range(setting.seeds)
            for size in sizes
            for key in keys
        ]
