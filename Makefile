# What is done to the whole module. A folder that has targets of its own keeps
# them in a .mk file, which is included at the end.

GO          ?= go
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
TIMEOUT     ?= 600s
FLAGS       ?=

.PHONY: test build format vet staticcheck race nocgo compiler

# test is what must pass before a change goes in.
test: compiler format vet staticcheck race

# build compiles every package, once as it is and once without cgo.
build:
	$(GO) build ./...
	CGO_ENABLED=0 $(GO) build ./...

# format names the files that gofmt would change.
format:
	@files=$$(gofmt -l .); if [ -n "$$files" ]; then echo "gofmt would change:" $$files; exit 1; fi

vet:
	$(GO) vet ./...

staticcheck:
	$(GO) run $(STATICCHECK) ./...

# race runs every test under the race detector, which needs a C compiler.
race: compiler
	CGO_ENABLED=1 $(GO) test -race -timeout $(TIMEOUT) $(FLAGS) ./...

# nocgo runs every test without cgo and without the race detector.
nocgo:
	CGO_ENABLED=0 $(GO) test -timeout $(TIMEOUT) $(FLAGS) ./...

compiler:
	@cc=$$($(GO) env CC); command -v $${cc%% *} > /dev/null || { \
	  echo "make: the race detector needs a C compiler, and there is no $$cc here: install gcc or clang, or set CC."; \
	  echo "make: 'make nocgo' runs the tests without the race detector and needs none."; exit 1; }

include $(wildcard */*.mk */*/*.mk)
