// Package keystore defines a store of leased keys: the interface that an author of such a store implements.
// Package leasedkey, package httpkey and consumer.NewKeyed use the interface.
//
// The comments of the methods are the specification. Package storetest contains the test suite that every such
// store must pass.
package keystore

import (
	"context"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/enum"
	"github.com/semel-go/semel/store"
)

// Store stores leased keys for effects outside of a database. A key records that the effect is in progress, which
// process performs it and until when, and the outcome. A process claims a key for a lease; during the lease no other
// process can claim the key. The claimant ends the claim with its token. If the lease ends before the claim, the
// outcome is unknown. The store reports the unknown outcome to the next claimant of the key, which decides what to do.
//
// Times are measured by the store's clock. A store is safe for concurrent use. Each method is atomic for its key.
type Store interface {
	// ClaimKey claims a key, or returns the reason why the key cannot be claimed. If the response was lost,
	// the caller repeats the call with the same token. The repeated call gets the same answer and counts once.
	ClaimKey(ctx context.Context, c Claim) (Answer, error)
	// ExtendKey sets the end of the lease to the given duration from now. If the key has another token, its claim has
	// ended or the key does not exist, ExtendKey returns store.ErrClaimLost and changes nothing. An expired lease is
	// extended if nobody has claimed the key since.
	ExtendKey(ctx context.Context, key semel.Key, t store.Token, lease time.Duration) error
	// EndKey ends the claim. EndKey returns store.ErrClaimLost in the same cases as ExtendKey. If the response
	// was lost, a repeated call with the same ending succeeds.
	EndKey(ctx context.Context, key semel.Key, t store.Token, e Ending) error
	// Classify returns the class of an error of the store: store.ClassDown, store.ClassRetry
	// or store.ClassPermanent.
	Classify(err error) store.Class
	// Durable returns how durable the store is. The result why is a short text with the settings on which the
	// durability depends.
	Durable() (d Durability, why string)
}

// MaxResult is the maximum size of a key's result in bytes.
const MaxResult = 64 << 10

// Claim is the argument of Store.ClaimKey.
type Claim struct {
	Key         semel.Key
	Fingerprint semel.Fingerprint
	// Token identifies the claim. Each attempt of a message needs a new token.
	Token store.Token
	// Lease is the duration of the claim, at least one millisecond.
	Lease time.Duration
	// Keep is how long the store keeps the key from now, whatever the outcome is; at least Lease.
	Keep time.Duration
	// Seen, if not 0, is AbandonedKey.Started of an abandoned key. The key is claimed only if it has exactly this
	// number of claims; if not, the answer is Gone. A store without admin.RequestStore returns semel.ErrUnsupported.
	Seen int
}

// Fits returns an error if a field of the claim is invalid.
func (c *Claim) Fits() error {
	switch {
	case c.Key.Consumer == "" || c.Key.ID == "":
		return fmt.Errorf("a leased key needs a consumer and an id; it is %+v", c.Key)
	case len(c.Key.Consumer) > semel.MaxID || len(c.Key.Source) > semel.MaxID || len(c.Key.ID) > semel.MaxID:
		return fmt.Errorf("consumer, source and id of a leased key have at most %d bytes each", semel.MaxID)
	case c.Token == 0:
		return fmt.Errorf("a claim of key %q needs a token; use store.NewToken", c.Key.ID)
	case c.Lease < time.Millisecond || c.Keep < c.Lease:
		return fmt.Errorf("key %q is claimed for %v and kept for %v; a lease is at least 1ms, and a key is kept for at least its lease", c.Key.ID, c.Lease, c.Keep)
	case c.Seen < 0:
		return fmt.Errorf("key %q was seen after %d claims; a key that is left has one at least", c.Key.ID, c.Seen)
	}
	return nil
}

// State is the state of a key in the answer to a claim.
type State uint8

// The states in an answer.
const (
	// Claimed means that the caller has the claim until the lease ends.
	Claimed State = iota + 1
	// Held means that another claimant has the key. The message is not a duplicate, because the outcome is still open.
	Held
	// Completed means that the effect exists. Result is the stored result of the effect.
	Completed
	// Failed means that the effect failed permanently and does not exist. Result is the stored result.
	Failed
	// Conflict means that the key exists with another fingerprint.
	Conflict
	// Gone means that the key has another number of claims than Claim.Seen, or does not exist any more.
	// Nothing was changed.
	Gone
)

// String returns the state's name.
func (s State) String() string {
	return enum.Name([]string{Claimed: "claimed", Held: "held", Completed: "completed", Failed: "failed", Conflict: "conflict", Gone: "gone"}, s, "KeyState")
}

// Answer is the answer to a Claim.
type Answer struct {
	State State
	// Left is the remaining time of the current lease.
	Left time.Duration
	// Started is the number of claims of the key, including the new claim. Finished is the number of claims with a
	// known outcome. See Unknown.
	Started, Finished int
	// Since is the time since the first claim of the key.
	Since time.Duration
	// Result is the stored Ending.Result, if the state is Completed or Failed. The store never returns a
	// result for another fingerprint.
	Result []byte
}

// Unknown reports whether an earlier claim has an unknown outcome. The earlier claimant may have performed the effect
// and crashed, or may have got no response.
func (a Answer) Unknown() bool { return a.State == Claimed && a.Finished < a.Started-1 }

// Event is the way in which a claim ends.
type Event uint8

// The ways in which a claim ends.
const (
	// Complete means that the effect exists. Later claims get the answer Completed.
	Complete Event = iota + 1
	// Fail means that the effect does not exist and never will. Later claims get the answer Failed.
	Fail
	// Release means that the attempt had no effect. The key may be claimed again at once.
	Release
	// Abandon means that it is unknown whether the attempt had an effect. The key may be claimed again at once, and
	// Answer.Unknown of the new claim is true.
	Abandon
	// Forget means that, as the caller has found out, no claim of the key had an effect. The store removes the key. A
	// repeated call of EndKey returns store.ErrClaimLost.
	Forget
)

// String returns the event's name.
func (e Event) String() string {
	return enum.Name([]string{Complete: "complete", Fail: "fail", Release: "release", Abandon: "abandon", Forget: "forget"}, e, "KeyEvent")
}

// Ending describes how a claim of a key ends.
type Ending struct {
	Event Event
	// Result is stored with the key if Event is Complete or Fail; at most MaxResult bytes.
	Result []byte
	// Keep is how long the store keeps the key from now.
	Keep time.Duration
}

// Fits returns an error if a field of the ending is invalid.
func (e *Ending) Fits() error {
	switch {
	case e.Event < Complete || e.Event > Forget:
		return fmt.Errorf("a claim of a key does not end by %v", e.Event)
	case len(e.Result) > MaxResult:
		return fmt.Errorf("the result of a key has %d bytes, and at most %d are kept; keep a reference to it", len(e.Result), MaxResult)
	case len(e.Result) > 0 && e.Event != Complete && e.Event != Fail:
		return fmt.Errorf("a result is kept when a key is completed or failed, not by %v", e.Event)
	case e.Keep < time.Millisecond:
		return fmt.Errorf("a key is kept for %v; at least 1ms, and longer than a copy can take to come", e.Keep)
	}
	return nil
}

// Durability is the degree to which a store still has its keys after a crash.
type Durability uint8

// The degrees of durability, from best to worst.
const (
	// Durable means that acknowledged writes survive a crash.
	Durable Durability = iota + 1
	// DurableExceptSeconds means that a crash may lose the writes that were acknowledged in the last seconds.
	DurableExceptSeconds
	// Volatile means that a crash, a failover or eviction may lose keys.
	Volatile
	// DurabilityUnknown means that the settings on which the durability depends could not be read.
	DurabilityUnknown
)

// String returns the name of the degree.
func (d Durability) String() string {
	return enum.Name([]string{Durable: "durable", DurableExceptSeconds: "durable but for the last seconds", Volatile: "volatile", DurabilityUnknown: "unknown"}, d, "Durability")
}
