package redisstore

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/store"
)

// Options has the settings for the names of keys, and the declared durability of servers that do not report their
// settings.
type Options struct {
	// Prefix is the beginning of every key's name; default "semel".
	Prefix string
	// HashTag, if not empty, follows the prefix in braces. With a HashTag, all keys are in one slot of the cluster, on
	// one node.
	HashTag string
	// Declared, if not zero, is the durability of a server that does not report its settings, such as a managed
	// service. Because is the reason for the value of Declared. If the server reports its settings, Declared is
	// ignored.
	Declared keystore.Durability
	Because  string
}

// Store is a keystore.Store in Redis. Depending on the client, it uses a single server, Sentinel, or Cluster.
// Create a Store with New. Store is safe for concurrent use; concurrent calls share a pipeline.
type Store struct {
	client  rueidis.Client
	prefix  string
	scripts scripts
	durable keystore.Durability
	why     string
}

// New reads the durability of the server and returns a store. The store uses the client and does not close the
// client.
func New(ctx context.Context, client rueidis.Client, o Options) (*Store, error) {
	if client == nil {
		return nil, errors.New("redisstore: the client is nil; create one with rueidis.NewClient")
	}
	if strings.ContainsAny(o.Prefix+o.HashTag, "{}") {
		return nil, fmt.Errorf("redisstore: the prefix %q and the hash tag %q must not contain braces; redisstore adds braces around the tag", o.Prefix, o.HashTag)
	}
	if o.Declared != 0 && o.Because == "" {
		return nil, fmt.Errorf("redisstore: Declared is %v without a reason; set Because", o.Declared)
	}
	s := &Store{client: client, prefix: o.Prefix, scripts: load()}
	if s.prefix == "" {
		s.prefix = "semel"
	}
	if o.HashTag != "" {
		s.prefix += ":{" + o.HashTag + "}"
	}
	return s, s.read(ctx, o)
}

// maxName is the maximum length of a key's name; a longer name ends with a hash.
const maxName = 512

// name returns the name of a key in Redis: prefix, consumer, source and id, separated by colons. All bytes
// except letters, digits, '.', '-', '_' and '/' are written as % and two hex digits. So names are unique, and
// an id cannot contain a hash tag.
func (s *Store) name(k semel.Key) string {
	var b strings.Builder
	b.WriteString(s.prefix)
	for _, part := range []string{k.Consumer, k.Source, k.ID} {
		b.WriteByte(':')
		escape(&b, part)
	}
	if b.Len() <= maxName {
		return b.String()
	}
	return s.prefix + "#" + hex.EncodeToString(sqlform.KeySum(k))
}

func escape(b *strings.Builder, part string) {
	for i := range len(part) {
		switch c := part[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '-', c == '_', c == '/':
			b.WriteByte(c)
		default:
			fmt.Fprintf(b, "%%%02x", c)
		}
	}
}

func tokenOf(t store.Token) string {
	return string(binary.BigEndian.AppendUint64(nil, uint64(t)))
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// ClaimKey implements keystore.Store.
func (s *Store) ClaimKey(ctx context.Context, c keystore.Claim) (keystore.Answer, error) {
	if err := c.Fits(); err != nil {
		return keystore.Answer{}, fmt.Errorf("redisstore: %w", err)
	}
	if c.Seen > 0 {
		return keystore.Answer{}, fmt.Errorf("redisstore: the claim sets Seen, which this store does not support: %w", semel.ErrUnsupported)
	}
	sum := c.Fingerprint.Sum
	answer, err := s.scripts.claim.Exec(ctx, s.client, []string{s.name(c.Key)}, []string{
		tokenOf(c.Token), milliseconds(c.Lease), milliseconds(c.Keep), strconv.Itoa(int(c.Fingerprint.Version)), string(sum[:])}).ToArray()
	if err != nil {
		return keystore.Answer{}, wrapError("claim", err)
	}
	var n [5]int64
	if len(answer) < len(n) {
		return keystore.Answer{}, wrapError("claim", fmt.Errorf("the script returned %d values", len(answer)))
	}
	for i := range n {
		if n[i], err = answer[i].AsInt64(); err != nil {
			return keystore.Answer{}, wrapError("claim", err)
		}
	}
	a := keystore.Answer{
		State: keystore.State(n[0]), Left: time.Duration(n[1]) * time.Millisecond, Started: int(n[2]), Finished: int(n[3]), Since: time.Duration(n[4]) * time.Millisecond}
	if a.Since < 0 { // the server's clock was ahead at the time of the first claim
		a.Since = calls.Unmeasured
	}
	if len(answer) > len(n) {
		if a.Result, err = answer[len(n)].AsBytes(); err != nil {
			return keystore.Answer{}, wrapError("claim", err)
		}
	}
	return a, nil
}

// ExtendKey implements keystore.Store.
func (s *Store) ExtendKey(ctx context.Context, key semel.Key, t store.Token, lease time.Duration) error {
	return checkClaim("extend", s.scripts.extend.Exec(ctx, s.client, []string{s.name(key)}, []string{tokenOf(t), milliseconds(lease)}))
}

// EndKey implements keystore.Store.
func (s *Store) EndKey(ctx context.Context, key semel.Key, t store.Token, e keystore.Ending) error {
	if err := e.Fits(); err != nil {
		return fmt.Errorf("redisstore: %w", err)
	}
	return checkClaim("end", s.scripts.end.Exec(ctx, s.client, []string{s.name(key)}, []string{
		tokenOf(t), strconv.Itoa(int(e.Event)), milliseconds(e.Keep), string(e.Result)}))
}

// checkClaim returns an error if the script failed. If the caller no longer has the claim, the error is
// store.ErrClaimLost.
func checkClaim(what string, r rueidis.RedisResult) error {
	n, err := r.AsInt64()
	switch {
	case err != nil:
		return wrapError(what, err)
	case n == 0:
		return store.ErrClaimLost
	}
	return nil
}
