package delivery

import (
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/guard"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/reading"
)

// reader is what one goroutine reads with.
type reader struct {
	room *reading.Room
	// alone, when set, is taken while a function of the user's own runs: it was
	// never called for two messages of a run at once, and one with a buffer of
	// its own would make wrong fingerprints without anybody noticing.
	alone chan struct{}
}

// find returns the identity of a message. A user-defined identity is assumed not to support buffered reads,
// even if it wraps one of ours.
func (r reader) find(by identity.Identity, m *semel.Message) (source, id string, err error) {
	if own, ok := by.(*identity.Selected); ok {
		return own.FindIn(r.room, m)
	}
	r.own(func() { source, id, err = identity.Func(by.Identify).Identify(m) })
	return source, id, err
}

// print is the message's fingerprint.
func (r reader) print(c *Rules, m *semel.Message) (f semel.Fingerprint, err error) {
	defer c.recoverPrint(&f, &err)
	if ours, ok := c.Fingerprint.(reading.Printer); ok {
		f, err = ours.FingerprintIn(r.room, m)
	} else {
		r.own(func() { f, err = c.Fingerprint.Fingerprint(m) })
	}
	return f, guard.Readable(err)
}

// usersOwn reports whether identity and fingerprint are of types of the user's.
func (c *Rules) usersOwn() (by, prints bool) {
	_, selected := c.Identity.(*identity.Selected)
	_, ours := c.Fingerprint.(reading.Printer)
	formerly := true
	if c.Previous != nil {
		_, formerly = c.Previous.(*identity.Selected)
	}
	return !selected && c.Identity != nil || !formerly, !ours
}

// own runs a function of the user's own. What it did to the body nobody knows,
// so that it is read anew.
func (r reader) own(run func()) {
	if r.alone != nil {
		r.alone <- struct{}{}
		defer func() { <-r.alone }()
	}
	defer r.room.Begin()
	run()
}

// recoverPrint is deferred by print. A Fingerprinter that panics
// cannot read the message, which is set aside.
func (c *Rules) recoverPrint(f *semel.Fingerprint, err *error) {
	if value := recover(); value != nil {
		*f, *err = semel.Fingerprint{}, c.Panicked("the fingerprinter", value)
	}
}

func (r reader) version(c *Rules, m *semel.Message) (stream string, number int64, err error) {
	if ours, ok := c.Version.(*identity.Versions); ok {
		return ours.FindIn(r.room, m)
	}
	defer func() {
		if value := recover(); value != nil {
			err = c.Panicked("the function that finds the version", value)
		}
	}()
	r.own(func() { stream, number, err = c.Version.Version(m) })
	return stream, number, guard.Readable(err)
}

// fit is an identity that was found as the store can hold it. It is no part of
// finding, which reads the body in the engine's room: a type of our own around
// the user's identity would have each body parsed a second time.
func (c *Rules) fit(source, id string) (_, _ string, err error) {
	if c.FitIdentity == nil || id == "" {
		return source, id, nil
	}
	spelled, err := c.spell(source, id)
	if err == nil && spelled == id {
		return source, id, nil
	}
	return held(source, spelled, err)
}

// spell asks the store.
func (c *Rules) spell(source, id string) (spelled string, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = c.Panicked("the store's FitIdentity", value)
		}
	}()
	return c.FitIdentity(source, id)
}

// held holds what the store answered to the rules of identities, its error, too.
func held(source, id string, err error) (_, _ string, _ error) {
	return identity.Func(func(*semel.Message) (string, string, error) { return source, id, err }).Identify(nil)
}
