# syntax=docker/dockerfile:1
# RouteScope for a team: docs/server.md says how to run it. `python -m scripts.check_image` runs these steps
# without a container engine.
ARG PYTHON=3.12-slim-trixie

FROM python:${PYTHON} AS build
# CPU-only builds of torch: those with a GPU's libraries are ten times as large. Empty: the usual index.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
WORKDIR /src
COPY requirements.txt requirements-documents.txt requirements-server.txt ./
RUN python -m venv /opt/routescope
RUN /opt/routescope/bin/python -m pip install ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} "$(grep '^torch==' requirements.txt)"
RUN /opt/routescope/bin/python -m pip install -r requirements.txt -r requirements-documents.txt -r requirements-server.txt
COPY . .
RUN /opt/routescope/bin/python -m pip wheel --no-deps --wheel-dir /src/dist . \
    && /opt/routescope/bin/python -m pip install --no-deps /src/dist/*.whl

FROM python:${PYTHON}
# What the language model's server (xllamacpp) is linked to and the slim image does not have.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libgomp1 \
    && rm -rf /var/lib/apt/lists/*
RUN groupadd --gid 10001 routescope && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /tmp routescope \
    && install --directory --owner 10001 --group 10001 /data /models
COPY --from=build /opt/routescope /opt/routescope
# Sessions, indexes and caches are in /data, models in /models, all else is only read. Nothing is fetched at the
# start unless ROUTESCOPE_FIRST_START is on.
ENV PATH=/opt/routescope/bin:$PATH HOME=/tmp PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 \
    ROUTESCOPE_HOME=/data ROUTESCOPE_MODELS_DIR=/models HF_HOME=/models/huggingface ROUTESCOPE_FIRST_START=off
USER 10001:10001
WORKDIR /data
VOLUME ["/data", "/models"]
EXPOSE 8501
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "import urllib.request as r; r.build_opener(r.ProxyHandler({})).open('http://127.0.0.1:8501/_stcore/health', timeout=4)"]
ENTRYPOINT ["routescope"]
CMD ["serve", "--host", "0.0.0.0"]
