package simulator

import "time"

// freeze stops a process as a SIGSTOP or a long pause of its memory's collector
// does. Its lanes go to others, the store ends its transactions, and when it
// resumes it hears of all that late, after it has gone on with what it had.
func (w *world) freeze() {
	if p := w.someone(); p != nil {
		p.freeze()
	}
}

func (p *process) freeze() {
	if p.frozen || p.over {
		return
	}
	w := p.w
	p.frozen = true
	long, session, idle := w.choices.Wait(20*time.Second), w.choices.Wait(5*time.Second), w.choices.Wait(5*time.Second)
	if w.main != nil {
		w.coverage.Add("fault", "a sender is frozen")
	}
	w.fault("process frozen", "for %v, a member for %v", long, session)
	w.after(min(session, long), func() {
		if !p.frozen || p.over || long < session {
			return
		}
		for _, l := range w.source.Lanes {
			if l.Held && l.Owner == p {
				w.fault("lane of a frozen process lost", "%s", l.ID)
				w.lose(l)
			}
		}
	})
	w.after(min(idle, long), func() {
		if p.frozen && !p.over && idle <= long {
			w.endIdle(p)
		}
	})
	w.after(long, p.thaw)
}

// endIdle ends the transactions in which a process is silent.
func (w *world) endIdle(p *process) {
	for _, f := range p.flights {
		if f.tx != nil && f.tx.Open && !f.tx.Committing {
			w.fault("idle transaction ended", "f%d", f.of.Number)
			f.tx.Cut = true
			w.end(f.tx)
		}
	}
}

// thaw lets a frozen process go on with what has happened meanwhile, in order;
// what that makes the world say to it comes after it.
func (p *process) thaw() {
	if !p.frozen {
		return
	}
	p.w.note("life goes on after a freeze, with %d occurrences", len(p.late))
	for i := 0; i < len(p.late) && !p.over; i++ {
		p.late[i]()
	}
	p.frozen, p.late = false, nil
}
