package store

import (
	"context"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/enum"
)

// KeyStore stores leased keys for effects outside of a database. A key records that the effect is in
// progress, who performs it and until when, and its outcome. A key is claimed for a lease, during which
// nobody else can claim it. The claimant ends the claim with its token. If the lease ends first, the
// outcome is unknown, and the next claimant of the key is told and decides.
//
// Times are by the store's clock. A store is safe for concurrent use. Each method is atomic for its
// key.
type KeyStore interface {
	// ClaimKey claims a key or returns why it cannot. A repeated call with the same token, after a
	// lost response, gets the same answer and counts once.
	ClaimKey(ctx context.Context, c KeyClaim) (KeyAnswer, error)
	// ExtendKey makes the lease end after this duration from now. ErrClaimLost: the key has another
	// token, has ended or does not exist; nothing is changed. An expired lease is extended if
	// nobody has claimed the key since.
	ExtendKey(ctx context.Context, key semel.Key, t Token, lease time.Duration) error
	// EndKey ends the claim. ErrClaimLost is returned as by ExtendKey. A repeated call with the same
	// ending, after a lost response, succeeds.
	EndKey(ctx context.Context, key semel.Key, t Token, e KeyEnding) error
	// Classify returns the class of an error of the store: ClassDown, ClassRetry or
	// ClassPermanent.
	Classify(err error) Class
	// Durable returns how durable the store is, and the settings that decide it as a short text.
	Durable() (d Durability, why string)
}

// MaxKeyResult is the maximum size of a key's result in bytes.
const MaxKeyResult = 64 << 10

// KeyClaim is the argument of KeyStore.ClaimKey.
type KeyClaim struct {
	Key         semel.Key
	Fingerprint semel.Fingerprint
	// Token is a new token for each attempt.
	Token Token
	// Lease is the duration of the claim, at least one millisecond.
	Lease time.Duration
	// Keep is how long the key is stored from now, whatever its outcome; at least Lease.
	Keep time.Duration
	// Seen, if not 0, is AbandonedKey.Started of an abandoned key. The key is claimed only if it has
	// exactly this number of claims; otherwise the answer is KeyGone. A store without
	// RequestStore returns semel.ErrUnsupported.
	Seen int
}

// Fits returns an error if a field of the claim is invalid.
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

// KeyState is the answer to a claim of a key.
type KeyState uint8

// The answers.
const (
	// KeyClaimed: the caller has the claim until its lease ends.
	KeyClaimed KeyState = iota + 1
	// KeyHeld: another claimant holds the key. This is not a duplicate, because the outcome is open.
	KeyHeld
	// KeyCompleted: the effect exists, and Result is its stored result.
	KeyCompleted
	// KeyFailed: the effect failed permanently and does not exist; Result is the stored result.
	KeyFailed
	// KeyConflict: the key exists with another fingerprint.
	KeyConflict
	// KeyGone: the key has another number of claims than KeyClaim.Seen, or does not exist any more.
	// Nothing was changed.
	KeyGone
)

// String is the state's name.
func (s KeyState) String() string {
	return enum.Name([]string{KeyClaimed: "claimed", KeyHeld: "held", KeyCompleted: "completed", KeyFailed: "failed", KeyConflict: "conflict", KeyGone: "gone"}, s, "KeyState")
}

// KeyAnswer is the answer to a KeyClaim.
type KeyAnswer struct {
	State KeyState
	// Left is the remaining time of the current lease.
	Left time.Duration
	// Started is the number of claims of the key, including a new claim of this call. Finished is
	// the number of claims with a known outcome. See Unknown.
	Started, Finished int
	// Since is the time since the first claim of the key.
	Since time.Duration
	// Result is KeyEnding.Result, with KeyCompleted and KeyFailed. It is never returned for another
	// fingerprint.
	Result []byte
}

// Unknown reports whether an earlier claim has an unknown outcome: its claimant may have performed the
// effect and crashed, or received no response.
func (a KeyAnswer) Unknown() bool { return a.State == KeyClaimed && a.Finished < a.Started-1 }

// KeyEvent is how a claim ends.
type KeyEvent uint8

// The events.
const (
	// KeyComplete: the effect exists. Later claims are answered with KeyCompleted.
	KeyComplete KeyEvent = iota + 1
	// KeyFail: the effect does not exist and never will. Later claims are answered with KeyFailed.
	KeyFail
	// KeyRelease: this attempt had no effect, and the key may be claimed at once.
	KeyRelease
	// KeyAbandon: it is unknown whether this attempt had an effect. The key may be claimed at once,
	// and KeyAnswer.Unknown reports true.
	KeyAbandon
	// KeyForget: the caller found out that no claim of this key had an effect. The key is removed. A
	// repeated call returns ErrClaimLost.
	KeyForget
)

// String is the event's name.
func (e KeyEvent) String() string {
	return enum.Name([]string{KeyComplete: "complete", KeyFail: "fail", KeyRelease: "release", KeyAbandon: "abandon", KeyForget: "forget"}, e, "KeyEvent")
}

// KeyEnding is how a claim of a key ends.
type KeyEnding struct {
	Event KeyEvent
	// Result, with KeyComplete and KeyFail, is stored with the key; at most MaxKeyResult bytes.
	Result []byte
	// Keep is how long the key is stored from now.
	Keep time.Duration
}

// Fits returns an error if a field of the ending is invalid.
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

// Durability says whether a store still has its keys after a crash.
type Durability uint8

// The degrees, worst last.
const (
	// Durable: acknowledged writes survive a crash.
	Durable Durability = iota + 1
	// DurableExceptSeconds: a crash may lose writes that were acknowledged in the last seconds.
	DurableExceptSeconds
	// Volatile: a crash, a failover or eviction may lose keys.
	Volatile
	// DurabilityUnknown: the settings that decide could not be read.
	DurabilityUnknown
)

// String is the degree's name.
func (d Durability) String() string {
	return enum.Name([]string{Durable: "durable", DurableExceptSeconds: "durable but for the last seconds", Volatile: "volatile", DurabilityUnknown: "unknown"}, d, "Durability")
}
