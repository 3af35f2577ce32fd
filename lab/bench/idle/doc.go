// Package idle measures what an enrolled host takes from its machine while nobody
// asks anything of it: its link is up, its timer runs, and all is as declared.
//
// It has a benchmark only, which asserts no figure and is made once, on two machines
// of a lab (root on Linux):
//
//	go test ./lab/bench/idle -run '^$' -bench . -benchtime 1x -timeout 1h -idle 10m
//
// CPU time is that of the unit's control group, by the kernel: what the host runs is
// in it, who looks is not.
package idle
