// Package admission decides who becomes a node: tokens, enrolments, the operator's
// rules, approval, refusal, revocation.
//
// What it promises:
//
//   - One place of a token is one node, however many hosts come with it at
//     once: everything about one enrolment is one transaction.
//   - The same enrolment id with the same key gets the same answer for ever:
//     a host may be killed, or an answer lost, between any two steps.
//   - The token's place is reserved by the enrolment and used up by the ack. A
//     reservation is never given back by a timer; a host that comes back with
//     another token gives its first one's place back, and so does one that is
//     refused, or revoked while it is pending.
//   - What a machine says of itself is written down before it is decided on, in one
//     transaction with the decision. A token is the most there is: a rule may let a
//     person decide where the token admits, or refuse, and never the other way round.
//   - A request that is turned down before it is decided on (the token, its form)
//     changes nothing; of one that is refused the decision is kept, and on what, of
//     the newest of them. The caller writes either into the log.
//   - A refused machine comes back as the same node: with another token, or when its
//     rule is gone, it is decided on anew; a person's approval admits it when it asks
//     again.
//   - The secret of a token is in Create's answer and nowhere else.
//
// Expiry is judged by this side's clock only. Everything a machine says about
// itself is a claim; it is kept as it was when the decision was made.
package admission
