// Package fleet measures a control plane that has many nodes: the real
// mesh-controller in a control group with 1 GiB of memory and two processors, the
// nodes simulated (lab/fleet), TLS between them as everywhere.
//
// The benchmark asserts no time and is made once; it prints what was aimed at
// beside what was seen. Root on Linux, for the control group:
//
//	go test ./lab/bench/fleet -run '^$' -bench . -benchtime 1x -timeout 1h -nodes 10000 -state 100000
//
// The nodes take from the same processors as the control plane, which on a
// machine of two makes every figure a worse one than its own; what it took of
// them itself is in the table. A state of 100,000 nodes is made by enrolling
// them, many over one connection: they are admitted and have never said that
// they keep their credential.
//
// The test does the same with two hundred nodes and no limit on memory, and
// looks at what became of them.
package fleet
