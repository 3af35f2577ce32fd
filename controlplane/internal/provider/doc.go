// Package provider keeps what nodes are granted: each thing a node may reach
// beside its own link (a registry, a broker, a store) it reaches by a grant of its
// own, made when it is admitted and taken away when it is revoked.
//
// What it promises:
//
//   - The grants of a node are written in the transaction that admits it, and
//     written off in the one that revokes it. What is written and not yet done at
//     the provider is done from then on, whatever ends meanwhile.
//   - A grant is written off until its provider has said that it is gone. A
//     provider that is down is asked for ever, ever more seldom; who looks at the
//     node is told.
//   - Providers do not wait for each other, and one grant that cannot be done does
//     not keep back the others.
//   - The grant of one node is never another's: taking it away costs nobody else
//     anything.
//
// The control plane's own content endpoint is the first provider. It looks at the
// record itself, so that grant is good with the transaction that wrote it, and bad
// with the one that wrote it off.
//
// It does not hand credentials to nodes: what a provider has for a node is between
// the two.
package provider
