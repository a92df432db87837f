package redisstore

import (
	"errors"
	"fmt"
	"strings"

	"github.com/redis/rueidis"

	"github.com/semel-go/semel/store"
)

// Error is an error of Redis or of the connection to Redis. If Code is set, the server rejected the step and nothing
// was done. If Code is empty, it is unknown whether the step was done.
type Error struct {
	// Step is the step that failed: "claim", "extend", "end", "read settings".
	Step string
	// Code is the first word of the server's error, such as "READONLY" or "OOM". Code is empty if the error does not
	// come from the server.
	Code string
	Err  error
}

// Error returns a text that says what failed and what to do.
func (e *Error) Error() string {
	if remedy := remedies[e.Code]; remedy != "" {
		return fmt.Sprintf("redisstore: %s: %v; %s", e.Step, e.Err, remedy)
	}
	return fmt.Sprintf("redisstore: %s: %v", e.Step, e.Err)
}

// Unwrap returns the client's error.
func (e *Error) Unwrap() error { return e.Err }

// remedies contains a text for each error code: what is wrong and what to do.
var remedies = map[string]string{
	"READONLY":    "this server is a replica: a failover is running, or the address is wrong",
	"LOADING":     "the server is loading its data after a start; wait",
	"CLUSTERDOWN": "a slot has no master: wait for the failover, or repair the cluster",
	"MASTERDOWN":  "the replica lost its master",
	"TRYAGAIN":    "the slot is being moved to another node",
	"OOM":         "the server has no memory left and, as configured, evicts nothing: raise maxmemory, or keep keys for a shorter time",
	"MISCONF":     "the server cannot write to disk and rejects writes: check its log and its disk",
	"NOREPLICAS":  "fewer replicas are connected than min-replicas-to-write requires",
	"NOAUTH":      "the server requires a password",
	"WRONGPASS":   "user or password is wrong",
	"NOPERM":      "the user lacks a permission: it needs EVALSHA, EVAL, GET, SET, DEL, TIME, PTTL and PEXPIRE on keys of the prefix",
	"WRONGTYPE":   "another program has a key of this name: choose another Prefix",
	"SEMELFORM":   "another program, or a newer release, has a key of this name: choose another Prefix, or use that release",
	"BUSY":        "a script of another client is still running",
}

func wrapError(step string, err error) error {
	e := &Error{Step: step, Err: err}
	if refusal, is := rueidis.IsRedisErr(err); is {
		e.Code, _, _ = strings.Cut(refusal.Error(), " ")
	}
	return e
}

// Classify implements keystore.Store. Every error is temporary, except the error for a key that another
// program has written.
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
