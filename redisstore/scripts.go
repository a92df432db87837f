package redisstore

import (
	_ "embed"
	"strings"

	"github.com/redis/rueidis"
)

//go:embed keys.lua
var text string

// scripts contains one Lua script for each step. Each script begins with the same common part.
type scripts struct{ claim, extend, end *rueidis.Lua }

func load() scripts {
	parts := strings.Split(text, "\n-- step: ")
	step := func(name string) *rueidis.Lua {
		for _, p := range parts[1:] {
			if rest, found := strings.CutPrefix(p, name+"\n"); found {
				return rueidis.NewLuaScript(parts[0] + "\n" + rest)
			}
		}
		panic("redisstore: keys.lua has no step " + name)
	}
	return scripts{claim: step("claim"), extend: step("extend"), end: step("end")}
}
