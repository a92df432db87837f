package machine

// startFlights begins a batch of queued items on every idle worker, without waiting until a batch is full.
func (m *Machine) startFlights() {
	if m.end.stopping {
		return
	}
	for n := range m.workers {
		i := m.nth(n)
		w := &m.workers[i]
		if w.flight != nil || w.backoffUntil > m.now || m.store.closed(m.now) || m.oneAtATime() && m.oneWrites() {
			continue
		}
		if len(w.ready) == 0 && (m.config.Lanes != NoOrder || m.config.Alone) {
			m.takeOver(w)
		}
		entries, empty := m.form(w)
		if len(entries) == 0 {
			continue
		}
		m.flights++
		w.claims = entries[0].Item.Claim != nil
		w.flight = &Flight{Number: m.flights, Worker: i, Entries: entries}
		w.flight.empty = empty
		if m.store.down {
			m.store.asks = w.flight
		}
		m.turn = i + 1
		m.do(Begin{Flight: w.flight, Serial: m.serial.on})
	}
}

// form puts together a worker's next batch, and returns its entries in order of arrival.
func (m *Machine) form(w *worker) (entries []Entry, empty bool) {
	m.forming = w.number
	entries, empty = m.collect(w)
	if len(entries) == 0 && w.beforeArrival != 0 {
		w.beforeArrival = 0
		entries, empty = m.collect(w)
	}
	w.beforeArrival = 0
	m.forming = -1
	for i := range entries { // no other worker takes over the queues of these items until the batch ends
		m.rank(entries[i].Item.line)
	}
	return entries, empty
}

func (m *Machine) collect(w *worker) (entries []Entry, empty bool) {
	limit := w.batchLimit
	if w.beforeArrival != 0 {
		limit = m.config.Most
	}
	claims := m.claimsNext(w)
	for len(entries) < limit {
		it := m.earliest(w, claims)
		if it == nil || w.beforeArrival != 0 && it.arrival >= w.beforeArrival {
			break
		}
		alone := it.runAlone || m.tries(it) || m.config.ClaimsAlone && it.Claim != nil || m.config.Alone && it.markAs == AsApplied
		if alone && len(entries) > 0 || m.marksTwice(entries, it) || m.sharesFormer(it) {
			break
		}
		var charged bool
		if empty, charged = m.judge(it); charged {
			continue
		}
		m.move(it, placement{state: inFlight})
		if it.Claim != nil {
			it.Claim.begun = true
		}
		if entries == nil {
			entries = make([]Entry, 0, min(limit, len(it.line.items)-it.line.head+1))
		}
		entries = append(entries, Entry{Item: it, As: it.markAs, Unmarked: m.config.Unmarked && it.markAs == AsApplied && it.Claim == nil, Unknown: it.unknown})
		if alone {
			break
		}
	}
	return entries, empty
}

// marksTwice reports whether the batch already writes a marker of the item's identity. A consumer without markers does
// not let copies wait for one another, so two copies may fail at the same time. The second copy is marked, and counted,
// in the next batch.
func (m *Machine) marksTwice(entries []Entry, it *Item) bool {
	if !m.config.Unmarked || it.markAs == AsApplied {
		return false
	}
	for _, en := range entries {
		if !en.Unmarked && en.Item.key() == it.key() {
			return true
		}
	}
	return false
}

// claimsNext reports whether the worker's next batch consists of claimed rows. If there are claimed rows and
// deliveries, a batch of claimed rows follows each batch of deliveries. If the kinds did not alternate, a claimed row
// would wait for all deliveries that were fetched before it, and up to MaxUnacked deliveries may have been fetched. If
// a batch was split after a failure, the next batches have the same kind.
func (m *Machine) claimsNext(w *worker) bool {
	claims := w.claims == (w.beforeArrival != 0)
	if m.earliest(w, claims) == nil {
		return !claims
	}
	return claims
}

// earliest returns the worker's first item that may run now, among its claimed rows (if the parameter claims is set) or
// among its other items.
func (m *Machine) earliest(w *worker, claims bool) (best *Item) {
	mayTry := m.mayTry()
	consider := func(it *Item) {
		if it != nil && (best == nil || it.arrival < best.arrival) && (mayTry || !m.tries(it)) {
			best = it
		}
	}
	for n, l := range w.unorderedLines {
		if claims == (n == ownClaims) {
			consider(l.firstItem())
		}
	}
	if claims != m.claimsReady() {
		return best
	}
	for _, l := range w.ready {
		consider(l.firstItem())
		if mayTry {
			break
		}
	}
	return best
}

// claimsReady reports whether the queues that are ready to run (lines) contain claimed rows. Claimed rows have their
// own queues only if each of them runs alone in a batch. If deliveries are ordered by key or lane, the queues of
// claimed rows are among the ready queues.
func (m *Machine) claimsReady() bool {
	return m.config.ClaimsAlone && m.config.Lanes == NoOrder && !m.config.Alone
}
