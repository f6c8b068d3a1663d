# The command cscnn with the extras train and viz, on the CPU:
#   docker build -t cscnn .
#   docker run --rm -v "$PWD:/work" --user "$(id -u)" cscnn train --preset navier_stokes_small ...
FROM python:3.11-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.11-slim
COPY constraints.txt /tmp/constraints.txt
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir --extra-index-url https://download.pytorch.org/whl/cpu \
        -c /tmp/constraints.txt "$(echo /wheels/cscnn-*.whl)[train,viz]" \
    && rm -r /wheels /tmp/constraints.txt \
    && useradd --create-home cscnn
USER cscnn
# Also for other users, who have no home: where matplotlib and the cost model keep their files.
ENV HOME=/tmp
WORKDIR /work
ENTRYPOINT ["cscnn"]
CMD ["--help"]
