package terms

import (
	"strings"

	"github.com/kljensen/snowball/english"
	"github.com/kljensen/snowball/russian"
)

// stem returns the term of a folded word.
func stem(word string) string {
	if lemma, ok := irregular[word]; ok {
		word = lemma
	}
	switch first := word[0]; {
	case 'a' <= first && first <= 'z':
		return english.Stem(word, true)
	case first == 0xd0 || first == 0xd1: // Cyrillic
		return russian.Stem(word, true)
	}
	return word
}

// irregular maps irregular forms to their words.
var irregular = forms(map[string]string{
	"be": "been was were am is are", "become": "became", "begin": "began begun", "bend": "bent", "bite": "bit bitten",
	"blow": "blew blown", "break": "broke broken", "bring": "brought", "build": "built", "buy": "bought",
	"catch": "caught", "choose": "chose chosen", "come": "came", "deal": "dealt", "dig": "dug", "draw": "drew drawn",
	"dream": "dreamt", "drink": "drank drunk", "drive": "drove driven", "eat": "ate eaten", "fall": "fell fallen",
	"feed": "fed", "feel": "felt", "fight": "fought", "find": "found", "fly": "flew flown", "forget": "forgot forgotten",
	"forgive": "forgave forgiven", "freeze": "froze frozen", "get": "got gotten", "give": "gave given", "go": "went gone",
	"grow": "grew grown", "hang": "hung", "have": "had has", "hear": "heard", "hide": "hid hidden", "hold": "held",
	"keep": "kept", "know": "knew known", "lay": "laid", "lead": "led", "learn": "learnt", "leave": "left", "lend": "lent",
	"light": "lit", "lose": "lost", "make": "made", "mean": "meant", "meet": "met", "pay": "paid", "ride": "rode ridden",
	"ring": "rang rung", "rise": "rose risen", "run": "ran", "say": "said", "see": "saw seen", "seek": "sought", "sell": "sold",
	"send": "sent", "shake": "shook shaken", "shine": "shone", "shoot": "shot", "show": "shown", "sing": "sang sung",
	"sink": "sank sunk", "sit": "sat", "sleep": "slept", "speak": "spoke spoken", "spend": "spent", "stand": "stood",
	"steal": "stole stolen", "stick": "stuck", "strike": "struck", "swim": "swam swum", "swing": "swung", "take": "took taken",
	"teach": "taught", "tear": "tore torn", "tell": "told", "think": "thought", "throw": "threw thrown",
	"understand": "understood", "wake": "woke woken", "wear": "wore worn", "weep": "wept", "win": "won", "write": "wrote written",
	"child": "children", "foot": "feet", "goose": "geese", "knife": "knives", "leaf": "leaves", "life": "lives", "man": "men",
	"mouse": "mice", "person": "people", "shelf": "shelves", "tooth": "teeth", "wife": "wives", "wolf": "wolves", "woman": "women",
	"good": "better best", "bad": "worse worst",
})

// forms inverts a map of words and their forms.
func forms(words map[string]string) map[string]string {
	all := map[string]string{}
	for word, list := range words {
		for form := range strings.FieldsSeq(list) {
			all[form] = word
		}
	}
	return all
}
