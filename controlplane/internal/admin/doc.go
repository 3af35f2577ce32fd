// Package admin is what the person who runs the mesh can ask of the control plane,
// at its local door (internal/door). Each verb is one variable, which both ends use:
// the commands ask with it, the desk puts a method behind it.
//
// A bundle is the one question that is not a message: it is read as it comes, by
// the service, whose alone the content store is.
package admin
