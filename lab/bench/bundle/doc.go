// Package bundle measures how fast mesh-host reads a bundle of 1 GiB from a pipe
// into its content store, verified and durable, beside what others do with the same
// file: in one run, in turn, with their versions.
//
// It has a benchmark only, which asserts no time:
//
//	go test ./lab/bench/bundle -run '^$' -bench . -benchtime 3x
//
// It needs 8 GiB below TMPDIR for as long as it runs, and leaves nothing there.
package bundle
