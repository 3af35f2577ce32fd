package declaration

// Order returns the indices of the resources in the order to apply them: that
// of the list, refined by after.
func (d *Declaration) Order() []int {
	o, cycle := d.order()
	if cycle != nil {
		panic("internal error: Parse let a circle through")
	}
	return o
}

// order walks depth first, in the order of the list. A circle is returned as
// the ids along it, the first repeated at the end.
func (d *Declaration) order() (out []int, cycle []string) {
	const (
		unseen = iota
		waiting
		done
	)
	index := map[string]int{}
	for i := range d.Resources {
		index[d.Resources[i].ID] = i
	}
	state := make([]int, len(d.Resources))
	var trail []int
	var visit func(i int) bool
	visit = func(i int) bool {
		switch state[i] {
		case done:
			return true
		case waiting:
			for n, t := range trail {
				if t == i {
					for _, x := range append(trail[n:], i) {
						cycle = append(cycle, d.Resources[x].ID)
					}
				}
			}
			return false
		}
		state[i] = waiting
		trail = append(trail, i)
		// What restarts a resource must be in place before it is looked at.
		for _, refs := range [][]string{d.Resources[i].After, d.Resources[i].RestartOn} {
			for _, ref := range refs {
				if !visit(index[ref]) {
					return false
				}
			}
		}
		trail = trail[:len(trail)-1]
		state[i] = done
		out = append(out, i)
		return true
	}
	for i := range d.Resources {
		if !visit(i) {
			return nil, cycle
		}
	}
	return out, nil
}
