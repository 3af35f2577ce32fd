// Package enrol holds what enrolment promises when something is in its way: the
// real mesh-host and mesh-controller, in roots of their own, with what loses,
// kills and lies between them. A machine becomes one node, whatever happens; a
// token enrols as many machines as it has uses, and is locked by nothing.
//
// It has no code but its tests, which need a network of their own (lab/fleet).
// More rounds of the killing, or the same ones again:
//
//	NOX_ENROL_ROUNDS=2000 NOX_ENROL_SEED=7 go test ./lab/enrol -run E12 -v
package enrol
