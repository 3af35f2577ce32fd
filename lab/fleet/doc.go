// Package fleet is many machines in one process: nodes that are nothing but what
// a control plane sees of them, and a control plane that is the real program.
//
// A Node enrols, holds its link, comes back and reports as host/link says, over
// TLS of its own from an address of its own; it applies nothing and writes
// nothing. Its waits are those of a host: full jitter from half a second to a
// minute, and what the control plane asks for. It is lean, so that ten thousand
// of them take less from a machine than what they are there to measure.
//
// A Plane is `mesh-controller serve` in a root of its own, if wanted in a control
// group with so much memory and so many processors.
//
// All of it is in a network of its own (Main), which is gone with the process: to
// the control plane each node comes from another machine, because its bounds are
// by source, and the machine's own addresses are in a lane of their own.
package fleet
