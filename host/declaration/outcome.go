package declaration

// Outcome is what became of one resource in one reconcile.
type Outcome string

// The outcomes.
const (
	// Unchanged: it was as declared, and ours.
	Unchanged Outcome = "unchanged"
	// Applied: it was made as declared.
	Applied Outcome = "applied"
	// Adopted: it already was as declared, and is now recorded as owned.
	Adopted Outcome = "adopted"
	// Repaired: drift was undone.
	Repaired Outcome = "repaired"
	// Removed: it is no longer declared, and gone.
	Removed Outcome = "removed"
	// Released: it is no longer declared, stays, and is not ours any more.
	Released Outcome = "released"
	// Held: the administrator, or a version that failed here, holds it.
	Held Outcome = "held"
	// Failed: it was tried and is not as declared.
	Failed Outcome = "failed"
	// Skipped: what it waited for did not work.
	Skipped Outcome = "skipped"
	// Unsupported: this machine cannot have such a thing.
	Unsupported Outcome = "unsupported"
)

// Changed reports whether the machine was changed.
func (o Outcome) Changed() bool {
	return o == Applied || o == Repaired || o == Removed
}

// Good reports whether the resource is as declared.
func (o Outcome) Good() bool {
	switch o {
	case Unchanged, Applied, Adopted, Repaired, Removed, Released:
		return true
	}
	return false
}
