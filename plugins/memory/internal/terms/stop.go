package terms

import "strings"

// stopWords are words that nearly every text has and that a search ignores.
var stopWords = set(`a about after again all also am an and any are as at be because been before being both but by can could d
did do does doing done down during each few for from further had has have having he her here hers herself him himself his how i if in
into is it its itself just ll m me more most my myself no nor not now o of off on once only or other our ours ourselves out over own re
s same shall she should so some such t than that the their theirs them themselves then there these they this those through to too under
until up upon us ve very was we were what when where which while who whom whose why will with would you your yours yourself yourselves
don didn doesn isn wasn aren weren won wouldn couldn shouldn hasn haven hadn ain`)

func set(words string) map[string]bool {
	all := map[string]bool{}
	for word := range strings.FieldsSeq(words) {
		all[word] = true
	}
	return all
}
