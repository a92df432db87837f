package sqlform

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/semel-go/semel/internal/generations"
	"github.com/semel-go/semel/store"
)

// claimArg is a claim in the JSON argument of PostgreSQL's statements.
type claimArg struct {
	K int   `json:"k"`
	N int64 `json:"n"`
	T int64 `json:"t"`
}

// EndingArgument is a store.ClaimEnding in the JSON argument of statements.
type EndingArgument struct {
	claimArg
	State   string `json:"state"`
	Outcome int64  `json:"outcome"`
	After   int64  `json:"after"`
	Reason  string `json:"reason"`
	Error   string `json:"error"`
	Ran     int64  `json:"ran"`
	// If a process gives the claim back, Taken is the number of started attempts (0 or 1) that the statement removes
	// from the row's count. For any other end of the claim, Taken is -1: the statement removes all started attempts
	// that have not finished.
	Taken int64 `json:"taken"`
	// Stream (in hex) and Place are the stream and the version for which a blocked row waits. If Place is 0, stream and
	// version of the row stay unchanged.
	Stream string `json:"stream"`
	Place  int64  `json:"place"`
	Call   int64  `json:"call"`
}

// ClaimsArgument returns the argument of statements about claims.
func ClaimsArgument(claims []store.Claim) string {
	all := make([]claimArg, len(claims))
	for i, c := range claims {
		all[i] = claimArg{i, c.Number, int64(c.Token)}
	}
	return JSON(all)
}

// ClaimLists returns claims as two lists.
func ClaimLists(claims []store.Claim) (numbers, tokens []int64) {
	for _, c := range claims {
		numbers, tokens = append(numbers, c.Number), append(tokens, int64(c.Token))
	}
	return numbers, tokens
}

// EndingsArgument returns the argument of statements that end claims.
func EndingsArgument(c Crypt, endings []store.ClaimEnding) string {
	all := make([]EndingArgument, len(endings))
	for i := range endings {
		e := EndingOf(c, &endings[i])
		e.K = i
		all[i] = e
	}
	return JSON(all)
}

// ClosingClaims returns the statement that ends claims in the transaction of their batch, and the arguments
// of the statement.
func ClosingClaims(c Crypt, p *Postgres, endings []store.ClaimEnding) (text string, args []any) {
	if len(endings) != 1 || p.CloseClaim == "" {
		all := slices.Clone(endings)
		for i := range all {
			all[i].Call = store.CallNone // a batch has no calls
		}
		return p.CloseClaims, []any{EndingsArgument(c, all)}
	}
	e := EndingOf(c, &endings[0])
	return p.CloseClaim, []any{e.N, e.T, e.State, e.Outcome, e.After, e.Reason, e.Error, e.Ran, e.Taken, e.Stream, e.Place}
}

// EndingOf converts e to the JSON argument of statements.
func EndingOf(c Crypt, e *store.ClaimEnding) EndingArgument {
	a := EndingArgument{claimArg: claimArg{N: e.Number, T: int64(e.Token)}, State: string(e.State), Outcome: int64(e.State.Outcome()),
		After: e.After.Milliseconds(), Reason: Plain(string(e.Reason)), Error: c.RowError(e.Number, e.Error), Call: int64(e.Call)}
	switch {
	case !e.Released():
		a.Taken = -1
	case e.Began:
		a.Taken = 1
	}
	if e.Ran {
		a.Ran = 1
	}
	if e.State == store.StateBlocked {
		a.Stream, a.Place = hex.EncodeToString(e.Version.Stream), e.Version.Number
	}
	return a
}

// JSON marshals a value that consists of numbers and texts. Marshalling such a value cannot fail.
func JSON(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}

// Standing returns the store's answer for a claimed row whose claim is valid.
func Standing(done bool) store.Verdict {
	if done {
		return store.Verdict{Kind: store.Seen, Was: store.Applied}
	}
	return store.Verdict{Kind: store.Fresh}
}

// stepsArg contains the steps of a row as an argument of PostgreSQL's statement.
type stepsArg struct {
	N int64  `json:"n"`
	S string `json:"s"`
	A bool   `json:"a"`
}

// StepsArgument returns the argument of PostgreSQL's statement that writes the steps of claims. If no ending
// has steps, the argument is empty.
func StepsArgument(c Crypt, endings []store.ClaimEnding) (string, error) {
	var all []stepsArg
	for i := range endings {
		if e := &endings[i]; e.Steps != nil {
			text, err := Steps(c, e.Number, e.Steps)
			if err != nil {
				return "", err
			}
			all = append(all, stepsArg{e.Number, text, e.Stepped})
		}
	}
	if all == nil {
		return "", nil
	}
	return JSON(all), nil
}

// NotWorking returns the error of a batch whose generation cannot be used now.
func NotWorking(w generations.Working) error {
	return fmt.Errorf("generation %d of consumer %s is not %v, or a switch is in progress: %w", w.Number, w.Consumer, w.In, generations.ErrNotUsable)
}

// WorkingArguments returns the arguments of the statement Working.
func WorkingArguments(w generations.Working) []any {
	return []any{[]byte(w.Consumer), w.Number, int64(w.In)}
}
