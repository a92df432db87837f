package audit

// The hashes that TestALineHasThisHash expects. Another program has computed these hashes from the description in
// docs/operate/audit.md.
const (
	goldenPlain = "e015bef188bbb2e0d10ea29673669a22f69b37bc14df0f566e301b4c1df6e10c"
	goldenKeyed = "518d45712221171d1c4ccfe81f6abcb3c141c44b62022233b55727ab3d89da33"
)
