package progress

import "time"

// window is how far back a rate looks: long enough to be calm, short enough to
// show that a peer has become slow.
const window = 5 * time.Second

// A meter tells a rate from what was done when.
type meter struct {
	points []point
}

type point struct {
	at   time.Time
	done int64
}

func (m *meter) add(at time.Time, done int64) {
	m.points = append(m.points, point{at, done})
	for len(m.points) > 2 && at.Sub(m.points[1].at) >= window {
		m.points = m.points[1:]
	}
}

// rate is in bytes a second; 0 when it is not known.
func (m *meter) rate() float64 {
	first, last := m.points[0], m.points[len(m.points)-1]
	took := last.at.Sub(first.at).Seconds()
	if took <= 0 || last.done <= first.done {
		return 0
	}
	return float64(last.done-first.done) / took
}
