"""`Pretrained`: forecasters in folders and on the Hugging Face hub.

The class has the three methods of ``huggingface_hub.ModelHubMixin``, with the same arguments.
It does not derive from it: that would need the package when the class is defined, and the mixin
keeps the arguments of constructors in a second file, while a forecaster's file describes itself.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch

from cscnn._util.files import check_output, write_text
from cscnn._util.jsonform import to_json, write_json
from cscnn._util.optional import require

if TYPE_CHECKING:
    from cscnn.forecasting.forecaster import Forecaster
    from cscnn.forecasting.training.config import TrainConfig

WEIGHTS, CARD, TRAINING = "model.safetensors", "README.md", "training.json"
FILES = (WEIGHTS, CARD, TRAINING)  #: of a folder to share
MESSAGE = "Upload a forecaster of cscnn"


class Pretrained:
    """Forecasters from folders and from the Hugging Face hub; `Forecaster` has these methods."""

    @classmethod
    def from_pretrained(
        cls,
        pretrained_model_name_or_path: str | Path,
        *,
        device: torch.device | str = "cpu",
        force_download: bool = False,
        token: str | bool | None = None,
        cache_dir: str | Path | None = None,
        local_files_only: bool = False,
        revision: str | None = None,
    ) -> Forecaster:
        """A trained forecaster, in eval mode.

        A folder and the zoo need neither a network nor huggingface_hub.

        Args:
            pretrained_model_name_or_path: a folder, e.g. of `save_pretrained` or of a run; an entry
                of the zoo, e.g. ``"zoo:navier_stokes"``; or a repository, e.g. ``"me/smoke"``.
            device: where to put it.
            force_download: again, if it is in the cache.
            token: for private repositories; by default that of ``hf auth login``.
            cache_dir: where downloads are kept.
            local_files_only: take what was downloaded before.
            revision: branch, tag or commit; by default main.

        Example:
            >>> from cscnn.forecasting import Forecaster
            >>> Forecaster.from_pretrained("zoo:navier_stokes").task.frames_in
            4
        """
        from cscnn.forecasting.forecaster import Forecaster

        name = str(pretrained_model_name_or_path)
        if (folder := _local_folder(name)) is not None:
            return Forecaster.load(folder, device)
        hub = require("huggingface_hub", f"loading {name!r}, which is no folder,", "hub")
        with _told(name):
            file = hub.hf_hub_download(
                name,
                WEIGHTS,
                revision=revision,
                cache_dir=cache_dir,
                force_download=force_download,
                token=token,
                local_files_only=local_files_only,
            )
        return Forecaster.load(file, device)

    def save_pretrained(
        self,
        save_directory: str | Path,
        *,
        repo_id: str | None = None,
        push_to_hub: bool = False,
        model_card_kwargs: Mapping[str, Any] | None = None,
        overwrite: bool = False,
        **push_to_hub_kwargs: Any,
    ) -> str | None:
        """Write a folder with the weights and a card, which can be shared by any means.

        Args:
            save_directory: the folder; it is made if it is not there.
            repo_id: by which others will load it, for the card; by default the folder's name.
            push_to_hub: upload the folder afterwards.
            model_card_kwargs: what the card says beside the forecaster: fields of
                `cscnn.forecasting.hub.card.About`, e.g. ``license`` or ``evaluation``.
            overwrite: replace files that exist.
            push_to_hub_kwargs: see `push_folder`.

        Returns:
            the address of the upload, if there is one.
        """
        from cscnn.forecasting.hub.card import About, model_card

        forecaster, folder = cast("Forecaster", self), Path(save_directory)
        about = About(**(model_card_kwargs or {}))
        card = str(model_card(forecaster, repo_id or folder.name, about))
        folder.mkdir(parents=True, exist_ok=True)
        written = FILES if about.config is not None else (WEIGHTS, CARD)
        for name in written:
            check_output(folder / name, overwrite=overwrite)
        forecaster.save(folder / WEIGHTS)
        write_text(folder / CARD, card)
        if about.config is not None:
            write_json(folder / TRAINING, shared_config(about.config))
        if not push_to_hub:
            return None
        return push_folder(folder, repo_id or folder.name, **push_to_hub_kwargs)

    def push_to_hub(
        self,
        repo_id: str,
        *,
        model_card_kwargs: Mapping[str, Any] | None = None,
        **push_to_hub_kwargs: Any,
    ) -> str:
        """Upload it with a card.

        Args:
            repo_id: the repository, e.g. ``"me/smoke"``.
            model_card_kwargs: as for `save_pretrained`.
            push_to_hub_kwargs: see `push_folder`.

        Returns:
            the address of the upload.
        """
        with tempfile.TemporaryDirectory() as folder:
            self.save_pretrained(folder, repo_id=repo_id, model_card_kwargs=model_card_kwargs)
            return push_folder(folder, repo_id, **push_to_hub_kwargs)


def push_folder(
    folder: str | Path,
    repo_id: str,
    *,
    commit_message: str = MESSAGE,
    private: bool | None = None,
    token: str | None = None,
    branch: str | None = None,
    create_pr: bool | None = None,
) -> str:
    """Upload a folder of `Pretrained.save_pretrained` in one commit, exactly as it is.

    Args:
        folder: with weights and a card.
        repo_id: the repository, which is made if it is not there.
        commit_message: of the commit.
        private: whether a new repository is private; by default as the account says.
        token: by default that of ``hf auth login``.
        branch: by default main.
        create_pr: propose the upload instead.

    Returns:
        the address of the commit.
    """
    for name in (WEIGHTS, CARD):
        if not (Path(folder) / name).is_file():
            raise FileNotFoundError(f"{folder} has no {name}: write it by cscnn hub save")
    hub = require("huggingface_hub", "uploading", "hub")
    with _told(repo_id):
        api = hub.HfApi(token=token)
        repository = api.create_repo(repo_id=repo_id, private=private, exist_ok=True).repo_id
        commit = api.upload_folder(
            repo_id=repository,
            folder_path=folder,
            commit_message=commit_message,
            revision=branch,
            create_pr=create_pr,
        )
    return str(commit)


def _local_folder(name: str) -> Path | None:
    """The folder or file that a name stands for; None if it may be a repository.

    Args:
        name: a path, or an entry of the zoo, e.g. ``"zoo:navier_stokes"``.
    """
    from cscnn.forecasting import zoo

    if name.startswith(zoo.PREFIX):
        return zoo.folder(name.removeprefix(zoo.PREFIX))
    return Path(name) if Path(name).exists() else None


def shared_config(config: TrainConfig) -> dict[str, Any]:
    """The options of a training without paths of the machine it ran on."""
    options = dict(to_json(config))
    del options["out"]
    for split in ("train", "valid", "test"):
        del options["data"][split]
    return options


@contextmanager
def _told(name: str) -> Iterator[None]:
    """Errors of the hub about a repository as one sentence."""
    errors = require("huggingface_hub.errors", "the hub", "hub")
    try:
        yield
    except errors.HFValidationError as error:
        raise ValueError(
            f"{name!r} is no folder that exists, and no repository, such as user/name"
        ) from error
    except errors.LocalTokenNotFoundError as error:
        raise PermissionError(
            "uploading needs an account: log in by hf auth login, or set HF_TOKEN"
        ) from error
    except (errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled) as error:
        raise FileNotFoundError(
            f"{name!r} is no folder that exists, was not downloaded before, and the hub cannot be "
            "reached now (is HF_HUB_OFFLINE set?)"
        ) from error
    except errors.EntryNotFoundError as error:
        raise FileNotFoundError(f"{name} is no forecaster of cscnn: it has no {WEIGHTS}") from error
    except errors.HfHubHTTPError as error:
        status = getattr(error.response, "status_code", "an error")
        reason = str(error).splitlines()[-1] if str(error) else type(error).__name__
        raise OSError(f"the hub answers {status} about {name!r}: {reason}") from error
