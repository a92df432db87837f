package consumer

import (
	"errors"
	"fmt"
	"hash/maphash"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/report"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/reading"
	"github.com/semel-go/semel/store"
)

// VersionPolicy lets versions of one stream take effect in their order, whatever order
// they come in: the next is applied, one that was passed is discarded
// (semel.ReasonStale), and one whose predecessor is missing waits in the store's inbox
// until the commit that brings it. The stream's last version commits with the effect.
// Two messages that share a version are told apart by their content: the second is
// discarded, or is a conflict if it differs, which ends as Config.OnConflict says.
type VersionPolicy struct {
	// By finds a message's stream and version: identity.Stream("body:/order").At("body:/version").
	// Required.
	By identity.Versioner
	// Start is the version that a stream begins with, at least 1; default 1.
	Start int64
	// FirstSeen begins a stream with the first version that is met of it, in place of
	// Start. A smaller one that comes later is discarded.
	FirstSeen bool
	// Gap is how long a version waits for the one before it, 1 s to 365 days; default 10
	// minutes. Then it is parked (semel.ReasonGap), and still freed when that comes.
	Gap time.Duration
	// GapCap is how many versions ahead of its stream's next one may wait; 0: any. A
	// version further ahead of its stream is parked (semel.ReasonGap) without a wait, and
	// still freed when its turn comes.
	GapCap int64
	// Missing ends a message without a version, or with one that is no whole number
	// from 1: ActionPark, ActionDeadLetter or ActionHalt.
	Missing Action
}

// DefaultGap is how long a version waits for the one before it.
const DefaultGap = 10 * time.Minute

func (v *VersionPolicy) defaults() *VersionPolicy {
	own := *v
	setDefault(&own.Gap, DefaultGap)
	if !own.FirstSeen {
		setDefault(&own.Start, 1)
	}
	return &own
}

func (c *Config) checkVersion(fault faultFunc) {
	v := c.Version
	if v == nil {
		return
	}
	if v.By == nil {
		fault("Version.By", "is missing; say where stream and version are: identity.Stream(\"body:/order\").At(\"body:/version\")")
	} else if err := v.By.Validate(); err != nil {
		fault("Version.By", "%v", err)
	}
	switch {
	case v.FirstSeen && v.Start != 0:
		fault("Version.Start", "is %d beside FirstSeen, which begins a stream with what comes first; remove one", v.Start)
	case !v.FirstSeen && (v.Start < 1 || v.Start > identity.MaxVersion):
		fault("Version.Start", "is %d; versions are from 1 to %d", v.Start, int64(identity.MaxVersion))
	}
	if v.Gap < time.Second || v.Gap > 365*24*time.Hour {
		fault("Version.Gap", "is %v; it must be 1s to 8760h", v.Gap)
	}
	if v.GapCap < 0 {
		fault("Version.GapCap", "is %d; it must be 1 or more, or 0 for any number", v.GapCap)
	}
	if v.Missing != ActionPark && v.Missing != ActionDeadLetter && v.Missing != ActionHalt {
		fault("Version.Missing", "%v is not an ending that is possible here", v.Missing)
	}
	if !c.Strategy.marks() {
		fault("Version", "is set, and the strategy is %v, which writes no markers: a version that waits needs one; use StrategyMarker or StrategyInbox", c.Strategy)
	}
}

// fitsVersions reports what of a store is in the way of versions.
func (c *settings) fitsVersions(store any) error {
	if c.Version == nil {
		return nil
	}
	if c.way != byTransaction {
		return fmt.Errorf("field Version needs a transaction, in which a stream moves with the effect, and handlers that call out have none: %w", semel.ErrUnsupported)
	}
	if _, keeps := store.(admin.Streams); !keeps {
		return fmt.Errorf("field Version needs a store that keeps streams, and this one does not: %w", semel.ErrUnsupported)
	}
	return nil
}

var errVersionGoexit = errors.New("the function that finds the version ended its goroutine (runtime.Goexit)")

// place finds a message's place in its stream.
func (p *parcel) place(c *settings, r reader, m *semel.Message) error {
	stream, number, err := r.version(c, m)
	if err == nil {
		err = identity.CheckStream(stream)
	}
	if err == nil && number < 1 {
		err = fmt.Errorf("its version is %d; the first is 1", number)
	}
	if err != nil {
		return err
	}
	p.item.Version = &machine.Version{Stream: stream, Number: number}
	return nil
}

func (r reader) version(c *settings, m *semel.Message) (stream string, number int64, err error) {
	if ours, ok := c.Version.By.(*identity.Versions); ok {
		return ours.FindIn(r.room, m)
	}
	defer func() {
		if value := recover(); value != nil {
			report.LogPanic(c.Logger, c.Name, "the function that finds the version", value)
			err = fmt.Errorf("the function that finds the version panicked: %s", legible.Panic(value))
		}
	}()
	r.own(func() { stream, number, err = c.Version.By.Version(m) })
	return stream, number, legible.Error(err, decidedAgain)
}

// placeAlone is place of a message that came without a fetch. One that ends its
// goroutine ends that of who asks.
func (p *parcel) placeAlone(c *settings) error {
	room := reading.Borrow()
	defer room.Return()
	return p.place(c, reader{room: room}, &p.message)
}

// onUnversioned and gap are of the policy, if there is one.
func (c *settings) onUnversioned() Action {
	if c.Version == nil {
		return ActionPark
	}
	return c.Version.Missing
}

func (c *settings) gap() (wait time.Duration, most int64) {
	if c.Version == nil {
		return 0, 0
	}
	return c.Version.Gap, c.Version.GapCap
}

// unversioned is the refusal of a message without a version. It keeps its identity, so
// that a policy that looked in the wrong place can be mended and the row be retried.
func (p *parcel) unversioned(why error) {
	p.item.Version = nil
	p.item.Refused = &machine.Refusal{Reason: semel.ReasonNoVersion, Why: why, Unversioned: true}
}

// versionOf is a message's place in its stream, as its mark has it; zero if it has none.
func (c *settings) versionOf(p *parcel, asks bool) store.Version {
	if p.item.Version == nil {
		return store.Version{}
	}
	v := p.versionIn(c.Version.Start)
	v.Asks = asks
	return v
}

// versionIn is a message's place in a stream that begins there.
func (p *parcel) versionIn(start int64) store.Version {
	v := p.item.Version
	if v == nil {
		return store.Version{}
	}
	return store.Version{Stream: []byte(v.Stream), Number: v.Number, Start: start}
}

// asksStream reports whether a mark of this kind is judged by its stream.
func asksStream(as machine.As) bool {
	switch as {
	case machine.AsApplied, machine.AsDuplicate, machine.AsDiscarded, machine.AsBlocked, machine.AsOverdue:
		return true
	}
	return false
}

// routeOf spreads messages over workers: by their stream, their key, or their identity.
// Where keys have an order, the key is what has it.
func (p *parcel) routeOf(lanes LaneMode) uint64 {
	key, version := p.message.Key, p.item.Version
	switch {
	case key != nil && (lanes == LanesKey || version == nil):
		return maphash.Bytes(routes, key)
	case version != nil:
		return maphash.String(routes, version.Stream)
	}
	return maphash.String(routes, p.item.Identity)
}
