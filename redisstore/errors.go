package redisstore

import (
	"errors"
	"fmt"
	"strings"

	"github.com/redis/rueidis"

	"github.com/semel-go/semel/store"
)

// Error is a failure of Redis, or of the way to it. Whether the step was done is not known,
// unless Code is set: then the server refused it, and nothing was done.
type Error struct {
	// Step is what was asked: "claim", "extend", "end", "read settings".
	Step string
	// Code is how the server's refusal begins: "READONLY", "OOM"; empty if it is none.
	Code string
	Err  error
}

// Error says what is wrong and what to do.
func (e *Error) Error() string {
	if remedy := remedies[e.Code]; remedy != "" {
		return fmt.Sprintf("redisstore: %s: %v; %s", e.Step, e.Err, remedy)
	}
	return fmt.Sprintf("redisstore: %s: %v", e.Step, e.Err)
}

// Unwrap returns the client's error.
func (e *Error) Unwrap() error { return e.Err }

// remedies are what to do about refusals.
var remedies = map[string]string{
	"READONLY":    "this server is a replica: a fail-over is under way, or the address is wrong",
	"LOADING":     "it reads its data after a start, and will answer",
	"CLUSTERDOWN": "a slot has no master: the cluster waits for a fail-over, or for a person",
	"MASTERDOWN":  "the replica lost its master",
	"TRYAGAIN":    "the slot is being moved to another node",
	"OOM":         "it has no memory left and evicts nothing, as it should: raise maxmemory, or keep keys for a shorter time",
	"MISCONF":     "it cannot write its data to disk, and so takes none: look at its log and its disk",
	"NOREPLICAS":  "fewer replicas than it was told to need are there",
	"NOAUTH":      "it wants a password",
	"WRONGPASS":   "it does not know this user with this password",
	"NOPERM":      "its user may not do that: it needs EVALSHA, EVAL, GET, SET, DEL, TIME, PTTL and PEXPIRE on keys of the prefix",
	"WRONGTYPE":   "another program has a key of this name: choose another Prefix",
	"SEMELFORM":   "another program, or a newer release, has a key of this name: choose another Prefix, or use that release",
	"BUSY":        "a script of another client does not end",
}

// failed wraps an error of the client.
func failed(step string, err error) error {
	e := &Error{Step: step, Err: err}
	if refusal, is := rueidis.IsRedisErr(err); is {
		e.Code, _, _ = strings.Cut(refusal.Error(), " ")
	}
	return e
}

// Classify implements store.KeyStore. Every error is temporary, except a key that another program has
// written.
func (s *Store) Classify(err error) store.Class {
	var e *Error
	switch {
	case !errors.As(err, &e):
		return store.ClassRetry
	case e.Code == "WRONGTYPE", e.Code == "SEMELFORM":
		return store.ClassPermanent
	}
	return store.ClassDown
}
