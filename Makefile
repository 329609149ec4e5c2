.DEFAULT_GOAL := help
.PHONY: help up test full screenshots picture docs race methods studies tables pin

help:  ## print this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/\t/'

up:  ## install if needed, start everything, print the address
	python3 run.py up

test:  ## lint, type-check and test
	python3 run.py test

full:  ## test, and the long ones: chaos, load, reproduction
	python3 run.py test --full

screenshots:  ## every page, light and dark, wide and narrow, into the folder screenshots
	.venv/bin/python -m tests.e2e.screenshots screenshots

picture:  ## the README's first picture, from the bundle that comes with the project
	.venv/bin/python -m tests.e2e.readme_picture  # with --pages URL: the smaller ones, of an installation

docs:  ## the parts of docs/ that are written from the code
	.venv/bin/python -m tests.written_docs

race:  ## train the start page's stored race anew
	.venv/bin/python -m ib_core.reproduction race

studies:  ## train what is missing of the stored studies of the field
	.venv/bin/python -m ib_core.reproduction studies

methods:  ## train what is missing of the stored comparison of all methods, and time their steps
	.venv/bin/python -m ib_core.reproduction methods
	.venv/bin/etascope bench methods --into docs/benchmarks.md --json ib_core/reproduction/methods_bundle/step_costs.json

tables:  ## train what is missing of all methods on every UCI table, and judge it anew
	.venv/bin/python -m ib_core.reproduction tables
	.venv/bin/python -m backend.services.analysis.unstored

pin:  ## fetch the images that a team's installation is made of, and name them by digest in .env
	@set -e; umask 077; for line in $$(grep -E '^ETASCOPE_[A-Z]+_IMAGE=' .env.example); do \
		name=$${line%%=*}; image=$${line#*=}; docker pull --quiet "$$image" > /dev/null; \
		digest=$$(docker image inspect --format '{{index .RepoDigests 0}}' "$$image"); \
		case $$digest in *@sha256:*) ;; *) echo "$$image has no digest" >&2; exit 1;; esac; \
		grep -v "^$$name=" .env > .env.pinned || true; echo "$$name=$$digest" >> .env.pinned; \
		cat .env.pinned > .env; rm .env.pinned; echo "$$name=$$digest"; done
