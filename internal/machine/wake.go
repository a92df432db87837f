package machine

// setWake requests a Timer event for the next time at which an action is possible.
func (m *Machine) setWake() {
	if m.end.done {
		return
	}
	at := m.nextMoment()
	if at == 0 || at == m.wake {
		return
	}
	m.wake = at
	m.do(Wake{At: at})
}

func (m *Machine) nextMoment() Time {
	var at Time
	consider := func(t Time) {
		if t > m.now && (at == 0 || t < at) {
			at = t
		}
	}
	if len(m.held) > 0 {
		consider(m.held[0].until)
	}
	for i := range m.workers {
		consider(m.workers[i].backoffUntil)
	}
	if m.serial.on {
		consider(m.serial.until)
	}
	if m.trial.on {
		consider(m.trial.until)
	}
	if m.breaker.open {
		consider(m.breaker.until)
	}
	if m.store.down {
		consider(m.store.until)
	}
	if !m.fetch.under {
		consider(m.fetch.until)
	} else if !m.fetch.canceled {
		consider(m.fetch.limit)
	}
	if m.config.Inbox && !m.claims.under && !m.end.stopping {
		consider(m.claims.until)
	}
	if len(m.claims.unstartedClaims) > 0 {
		consider(m.claims.unstartedClaims[0].until)
	}
	if len(m.settles.again) > 0 {
		consider(m.settles.until)
	}
	if m.end.stopping {
		consider(m.end.at)
	} else if m.endsIdle() && m.rests() {
		consider(m.idleAt())
		if m.fetch.under && !m.fetch.canceled {
			consider(m.endAskAt())
		}
	}
	return at
}
