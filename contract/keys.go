package contract

import (
	"context"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/enum"
)

// KeyStore keeps leased keys: for an effect outside of any database, that it is under way,
// by whom and until when, and then how it ended. A key is claimed for a lease; while that
// lasts nobody else gets it. Who called ends the key under its token. A lease that ends
// without that leaves an unknown outcome: whoever claims the key next is told, and decides.
//
// Times are by the store's clock. A store is safe for use by several goroutines, and does
// what it says of one key in one step.
type KeyStore interface {
	// ClaimKey claims a key, or says why not. The same token asked again, after an answer
	// that was lost, gets the same answer, and counts once.
	ClaimKey(ctx context.Context, c KeyClaim) (KeyAnswer, error)
	// ExtendKey lets the lease end so long after now. ErrClaimLost: another token stands
	// there, or the key has ended, or is gone; nothing was done. A lease that has ended
	// and that nobody has claimed since goes on.
	ExtendKey(ctx context.Context, key semel.Key, t Token, lease time.Duration) error
	// EndKey ends the claim. ErrClaimLost as of ExtendKey; the same ending again, after an
	// answer that was lost, succeeds.
	EndKey(ctx context.Context, key semel.Key, t Token, e KeyEnding) error
	// Classify says what an error of the store means: ClassDown, ClassRetry or
	// ClassPermanent.
	Classify(err error) Class
}

// MaxKeyResult is how many bytes of a result a key keeps.
const MaxKeyResult = 64 << 10

// KeyClaim asks for a key.
type KeyClaim struct {
	Key         semel.Key
	Fingerprint semel.Fingerprint
	// Token is chosen by the caller, anew for each attempt.
	Token Token
	// Lease is how long the key is the caller's; at least a millisecond.
	Lease time.Duration
	// Keep is how long the key is kept from now, whatever becomes of it; at least Lease.
	Keep time.Duration
	// Seen, if not 0, is AbandonedKey.Started of a key that the caller has seen left: it is claimed
	// only if it still stands after so many claims, and answers KeyGone otherwise. A store
	// without RequestStore refuses it with semel.ErrUnsupported.
	Seen int
}

// Fits is nil, or what is wrong with a claim.
func (c *KeyClaim) Fits() error {
	switch {
	case c.Key.Consumer == "" || c.Key.ID == "":
		return fmt.Errorf("a leased key needs a consumer and an id; it is %+v", c.Key)
	case len(c.Key.Consumer) > semel.MaxID || len(c.Key.Source) > semel.MaxID || len(c.Key.ID) > semel.MaxID:
		return fmt.Errorf("consumer, source and id of a leased key have at most %d bytes each", semel.MaxID)
	case c.Token == 0:
		return fmt.Errorf("a claim of key %q needs a token; use NewToken", c.Key.ID)
	case c.Lease < time.Millisecond || c.Keep < c.Lease:
		return fmt.Errorf("key %q is claimed for %v and kept for %v; a lease is at least 1ms, and a key is kept for at least its lease", c.Key.ID, c.Lease, c.Keep)
	case c.Seen < 0:
		return fmt.Errorf("key %q was seen after %d claims; a key that is left has one at least", c.Key.ID, c.Seen)
	}
	return nil
}

// KeyState is what a store answers to who claims a key.
type KeyState uint8

// The answers.
const (
	// KeyClaimed: the caller may call, and nobody else, until its lease ends.
	KeyClaimed KeyState = iota + 1
	// KeyHeld: another has it. That is no duplicate: nobody knows how it ends.
	KeyHeld
	// KeyCompleted: the effect is there, and what was kept of it is the Result.
	KeyCompleted
	// KeyFailed: it ended for good, without the effect; Result says what was kept of that.
	KeyFailed
	// KeyConflict: the key stands for another content.
	KeyConflict
	// KeyGone: it does not stand as KeyClaim.Seen says: others have claimed it since, or it is
	// forgotten. Nothing was done.
	KeyGone
)

// String is the state's name.
func (s KeyState) String() string {
	return enum.Name([]string{KeyClaimed: "claimed", KeyHeld: "held", KeyCompleted: "completed", KeyFailed: "failed", KeyConflict: "conflict", KeyGone: "gone"}, s, "KeyState")
}

// KeyAnswer is the answer to a KeyClaim.
type KeyAnswer struct {
	State KeyState
	// Left is what is left of the lease of who has the key.
	Left time.Duration
	// Started are the claims of the key, this one among them if it is one; Finished those
	// of which the end is known. A claim of KeyClaimed with fewer finished before it than
	// started has an unknown outcome behind it; see Unknown.
	Started, Finished int
	// Since is how long ago the first claim of the key was made.
	Since time.Duration
	// Result is what KeyEnding.Result kept, of KeyCompleted and KeyFailed: nobody gets that of
	// another content.
	Result []byte
}

// Unknown reports whether the outcome of a claim before this one is unknown: who made it
// may have called, and died, or heard no answer.
func (a KeyAnswer) Unknown() bool { return a.State == KeyClaimed && a.Finished < a.Started-1 }

// KeyEvent is how a claim ends.
type KeyEvent uint8

// The events.
const (
	// KeyComplete: the effect is there. The key answers KeyCompleted from now on.
	KeyComplete KeyEvent = iota + 1
	// KeyFail: there is no effect, and will be none. It answers KeyFailed from now on.
	KeyFail
	// KeyRelease: this attempt had no effect, and the key may be claimed at once.
	KeyRelease
	// KeyAbandon: nobody knows whether this attempt had one; the key may be claimed at
	// once, and answers with KeyAnswer.Unknown.
	KeyAbandon
	// KeyForget: none of the claims of this key had an effect, as somebody knows who asked:
	// the key is as if it had never been. The same ending again is ErrClaimLost.
	KeyForget
)

// String is the event's name.
func (e KeyEvent) String() string {
	return enum.Name([]string{KeyComplete: "complete", KeyFail: "fail", KeyRelease: "release", KeyAbandon: "abandon", KeyForget: "forget"}, e, "KeyEvent")
}

// KeyEnding is how a claim of a key ends.
type KeyEnding struct {
	Event KeyEvent
	// Result, with KeyComplete and KeyFail, is kept with the key, at most MaxKeyResult
	// bytes.
	Result []byte
	// Keep is how long the key is kept from now.
	Keep time.Duration
}

// Fits is nil, or what is wrong with an ending.
func (e *KeyEnding) Fits() error {
	switch {
	case e.Event < KeyComplete || e.Event > KeyForget:
		return fmt.Errorf("a claim of a key does not end by %v", e.Event)
	case len(e.Result) > MaxKeyResult:
		return fmt.Errorf("the result of a key has %d bytes, and at most %d are kept; keep a reference to it", len(e.Result), MaxKeyResult)
	case len(e.Result) > 0 && e.Event != KeyComplete && e.Event != KeyFail:
		return fmt.Errorf("a result is kept when a key is completed or failed, not by %v", e.Event)
	case e.Keep < time.Millisecond:
		return fmt.Errorf("a key is kept for %v; at least 1ms, and longer than a copy can take to come", e.Keep)
	}
	return nil
}

// Durability is how sure a store is to know its keys after a crash.
type Durability uint8

// The degrees, worst last.
const (
	// Durable: what it acknowledged, it knows.
	Durable Durability = iota + 1
	// DurableButSeconds: a crash may take what it acknowledged in the last seconds.
	DurableButSeconds
	// Volatile: a crash, a fail-over or a lack of memory takes keys that are needed.
	Volatile
	// DurabilityUnknown: nobody can tell.
	DurabilityUnknown
)

// String is the degree's name.
func (d Durability) String() string {
	return enum.Name([]string{Durable: "durable", DurableButSeconds: "durable but for the last seconds", Volatile: "volatile", DurabilityUnknown: "unknown"}, d, "Durability")
}

// KeyDurability is an optional ability of a KeyStore: to say how durable its keys are. A
// store without it is Durable.
type KeyDurability interface {
	// Durable says how sure the store is, and in a few words by which settings.
	Durable() (d Durability, why string)
}
