package database

import (
	"testing"

	"github.com/semel-go/semel/sqlstore/internal/mute"
)

// hooked is a connection like that of modernc.org/sqlite: the parameter of RegisterCommitHook has a named type.
type hooked struct{ hook namedHook }

type namedHook func() int32

func (h *hooked) RegisterCommitHook(hook namedHook) { h.hook = hook }

// plainly is a connection with the method of mattn/go-sqlite3's connections.
type plainly struct{ hook func() int }

func (p *plainly) RegisterCommitHook(hook func() int) { p.hook = hook }

// textual is a connection that has a method of the same name with another purpose.
type textual struct{}

func (textual) RegisterCommitHook(func() string) {}

func TestCommitHooks(t *testing.T) {
	t.Run("trap_T99_a_fence_refuses_every_commit_but_the_stores_own", func(t *testing.T) {
		open := false
		h, p := &hooked{}, &plainly{}
		for _, conn := range []any{h, p} {
			if !hookCommits(conn, func() bool { return open }) {
				t.Fatalf("%T has a hook that was not found", conn)
			}
		}
		if h.hook() == 0 || p.hook() == 0 {
			t.Error("a commit passes that is not the store's")
		}
		open = true
		if h.hook() != 0 || p.hook() != 0 {
			t.Error("the store's commit is refused")
		}
		unhookCommits(h)
		unhookCommits(p)
		if h.hook != nil || p.hook != nil {
			t.Error("the fence outlives the batch")
		}
	})
	t.Run("a_driver_without_a_hook_is_told_from_one_with", func(t *testing.T) {
		for _, conn := range []any{nil, mute.Conn{}, textual{}} {
			if hookCommits(conn, func() bool { return false }) {
				t.Errorf("%T has no hook", conn)
			}
			unhookCommits(conn)
		}
	})
}
