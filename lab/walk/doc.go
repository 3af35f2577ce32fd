// Package walk is the random walk of the host's engine: declaration after
// declaration, each a mutation of the one before, applied by the real mesh-host
// to a folder that stands for a machine. The host is killed in the middle, so
// are its shims and its processes, and what it owns is changed behind its back;
// after one apply that may come to its end the machine must be what was
// declared, and nothing else. It has no code but tests, which are built with the
// tag "machine".
//
// What the machine must be is the word of a model (model_test.go), which knows
// the contract and nothing of the host's code; what it is, is the word of
// package look, which imports nothing of it either.
//
// A walk is repeated by its seed, but for the instants of the kills:
//
//	NOX_WALK_SEED=7 NOX_WALK_ROUNDS=40 go test -tags machine -run Walk$ ./lab/walk
//
// NOX_WALK_FULL=1 makes it 500 rounds long, NOX_WALK_KEEP=1 leaves the folder of
// a walk that failed, NOX_WALK_HOST names a mesh-host to walk with instead of
// one of this source.
package walk
