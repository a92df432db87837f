package delivery

import (
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/guard"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/reading"
)

// reader contains the objects that one goroutine needs to read messages.
type reader struct {
	room *reading.Room
	// alone, if not nil, serves as a lock while a function of the user runs. So the function is never called
	// concurrently for two messages of a run. With concurrent calls, a function that reuses a buffer would return wrong
	// fingerprints without an error.
	alone chan struct{}
}

// find returns the source and id that an identity finds. A user-defined identity is assumed not to support
// reads in a Room, even if it wraps an identity of package identity.
func (r reader) find(by identity.Identity, m *semel.Message) (source, id string, err error) {
	if own, ok := by.(*identity.Selected); ok {
		return own.FindIn(r.room, m)
	}
	r.callUser(func() { source, id, err = identity.Func(by.Identify).Identify(m) })
	return source, id, err
}

// print returns the fingerprint of a message.
func (r reader) print(c *Rules, m *semel.Message) (f semel.Fingerprint, err error) {
	defer c.recoverPrint(&f, &err)
	if ours, ok := c.Fingerprint.(reading.Printer); ok {
		f, err = ours.FingerprintIn(r.room, m)
	} else {
		r.callUser(func() { f, err = c.Fingerprint.Fingerprint(m) })
	}
	return f, guard.Readable(err)
}

// userTypes reports whether types of the user determine the identity or previous identity (by), and the
// fingerprint (prints).
func (c *Rules) userTypes() (by, prints bool) {
	_, selected := c.Identity.(*identity.Selected)
	_, ours := c.Fingerprint.(reading.Printer)
	formerly := true
	if c.Previous != nil {
		_, formerly = c.Previous.(*identity.Selected)
	}
	return !selected && c.Identity != nil || !formerly, !ours
}

// callUser runs a function of the user. The user's function may have changed the body, so the Room afterwards
// drops the values that it has read.
func (r reader) callUser(run func()) {
	if r.alone != nil {
		r.alone <- struct{}{}
		defer func() { <-r.alone }()
	}
	defer r.room.Begin()
	run()
}

// recoverPrint is deferred by print. If the Fingerprinter panics, the message has no fingerprint, and print
// returns an error.
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
	r.callUser(func() { stream, number, err = c.Version.Version(m) })
	return stream, number, guard.Readable(err)
}

// fit returns an identity in the spelling that the store can save. fit is not part of find, because wrapping the user's
// identity in a type of this package would make Semel parse each body a second time.
func (c *Rules) fit(source, id string) (_, _ string, err error) {
	if c.FitIdentity == nil || id == "" {
		return source, id, nil
	}
	spelled, err := c.fitIdentity(source, id)
	if err == nil && spelled == id {
		return source, id, nil
	}
	return checkIdentity(source, spelled, err)
}

// fitIdentity calls the store's FitIdentity.
func (c *Rules) fitIdentity(source, id string) (spelled string, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = c.Panicked("the store's FitIdentity", value)
		}
	}()
	return c.FitIdentity(source, id)
}

// checkIdentity applies the rules of package identity to an identity that the store's FitIdentity returned, or to its
// error.
func checkIdentity(source, id string, err error) (_, _ string, _ error) {
	return identity.Func(func(*semel.Message) (string, string, error) { return source, id, err }).Identify(nil)
}
