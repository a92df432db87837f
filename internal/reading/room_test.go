package reading

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"
)

func TestTexts(t *testing.T) {
	t.Run("a text stays valid when the room reads the next one", func(t *testing.T) {
		room, buffer := new(Room), make([]byte, 0, 400)
		var texts, want []string
		for i := range 400 {
			text := fmt.Sprint(i, strings.Repeat("x", i%90))
			buffer = append(buffer[:0], text...)
			texts, want = append(texts, room.Text(buffer), room.Repeated(buffer)), append(want, text, text)
			clear(buffer)
			if i%50 == 0 {
				room.Forget()
			}
		}
		for i := range want {
			if texts[i] != want[i] {
				t.Fatalf("text %d is %q, want %q", i, texts[i], want[i])
			}
		}
	})
	t.Run("trap_T88_a_text_in_use_keeps_only_its_block_in_memory", func(t *testing.T) {
		room := new(Room)
		piece := func() uintptr { return uintptr(unsafe.Pointer(unsafe.StringData(room.texts.String()))) }
		room.Text([]byte("held"))
		first, shared := piece(), 0
		for range 1000 {
			room.Text([]byte("others"))
			if n := room.texts.Cap(); n > textPiece {
				t.Fatalf("a piece has %d bytes", n)
			}
			if piece() == first {
				shared++
			}
		}
		if most := textPiece / len("others"); shared == 0 || shared > most {
			t.Errorf("the block of the first text has %d other texts, at most %d are allowed", shared, most)
		}
	})
	t.Run("law_11_a_long_source_is_not_kept", func(t *testing.T) {
		room, long := new(Room), make([]byte, 1<<20)
		if text := room.Repeated(long); len(text) != len(long) || len(room.repeated) != 0 {
			t.Errorf("a text of %d bytes, of which %d are kept", len(text), len(room.repeated))
		}
	})
	t.Run("short texts need few allocations, and repeated ones none", func(t *testing.T) {
		room, id, source := new(Room), []byte("0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b"), []byte("shop")
		if n := testing.AllocsPerRun(1000, func() { room.Text(id); room.Repeated(source) }); n != 0 {
			t.Errorf("%v allocations each", n)
		}
	})
}
