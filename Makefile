.DEFAULT_GOAL := help
.PHONY: help up test full

help:  ## print this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/\t/'

up:  ## install if needed, start everything, print the address
	python3 run.py up

test:  ## lint, type-check and test, in under 15 minutes
	python3 run.py test

full:  ## test, and the long ones: chaos, load, reproduction
	python3 run.py test --full
