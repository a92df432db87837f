package bench

import (
	"fmt"
	"time"
)

// Form says how a handler writes its effect, and with which driver.
type Form string

// Ways in which a handler writes: each statement at once (Handle), statements that the store sends together
// (Queue), one call for a whole batch (HandleAll), and Handle through database/sql.
const (
	Handle    Form = "Handle"
	Queue     Form = "Queue"
	HandleAll Form = "HandleAll"
	HandleSQL Form = "Handle, database/sql"
)

// Forms returns all forms of handlers, in the order in which tables show them.
func Forms() []Form { return []Form{Handle, Queue, HandleAll, HandleSQL} }

// Effect is the change that a message makes.
type Effect string

// Effects, from no contention to the most contention.
const (
	// Insert adds a row to a table.
	Insert Effect = "insert"
	// Accounts adds an amount to one of 10,000 rows that all workers share.
	Accounts Effect = "10,000 accounts"
	// Counters adds an amount to one of 60 rows that all workers share.
	Counters Effect = "60 counters"
)

// IDs is the kind of the messages' ids.
type IDs string

// The kinds of ids: a text, a random UUID, and a UUID that begins with the time.
const (
	Text   IDs = "text"
	UUIDv4 IDs = "UUIDv4"
	UUIDv7 IDs = "UUIDv7"
)

// Conditions are the conditions under which a row of the table is measured.
type Conditions struct {
	Form    Form   `json:"form"`
	Effect  Effect `json:"effect"`
	Workers int    `json:"workers"`
	// Duplicates is the percentage of deliveries whose message was applied before.
	Duplicates int `json:"duplicates_percent"`
	IDs        IDs `json:"ids"`
	// Latency is the delay that is added to each round trip.
	Latency time.Duration `json:"latency_ns"`
	Body    Body          `json:"body,omitzero"`
}

// Base returns the conditions of the basic measurement for handlers of the form f: one worker, inserts, no duplicates.
// Most other measurements differ from Base in one factor.
func Base(f Form) Conditions { return Conditions{Form: f, Effect: Insert, Workers: 1, IDs: UUIDv7} }

// IsBase reports whether the conditions are those of Base, apart from the bodies of messages.
func (c Conditions) IsBase() bool {
	c.Body = Body{}
	return c == Base(c.Form)
}

// Contended reports whether workers wait for row locks of other workers.
func (c Conditions) Contended() bool { return c.Effect != Insert && c.Workers > 1 }

func (c Conditions) String() string {
	return fmt.Sprintf("%s: %s, %d workers, %d %% duplicates, %s, %v added, bodies of %v", c.Form, c.Effect, c.Workers, c.Duplicates, c.IDs, c.Latency, c.Body)
}

// Plan returns the measurements for handlers of the form f: the conditions of Base, conditions that differ from Base in
// one factor, and both contended effects with 3 and with 8 workers.
func Plan(f Form) []Conditions {
	rows := []Conditions{Base(f)}
	vary := func(change func(*Conditions)) {
		c := Base(f)
		change(&c)
		rows = append(rows, c)
	}
	for _, e := range []Effect{Accounts, Counters} {
		vary(func(c *Conditions) { c.Effect = e })
	}
	for _, w := range []int{3, 8} {
		vary(func(c *Conditions) { c.Workers = w })
	}
	vary(func(c *Conditions) { c.Duplicates = 50 })
	for _, ids := range []IDs{Text, UUIDv4} {
		vary(func(c *Conditions) { c.IDs = ids })
	}
	vary(func(c *Conditions) { c.Latency = time.Millisecond })
	for _, e := range []Effect{Accounts, Counters} {
		for _, w := range []int{3, 8} {
			vary(func(c *Conditions) { c.Effect, c.Workers = e, w })
		}
	}
	return rows
}
