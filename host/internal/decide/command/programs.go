package command

// programs are those of which it is known which uses are harmless: they read what
// lies in the workspace, and print. Options that name files, run programs or write
// are not in the table.
//
//nolint:gochecknoglobals // a table
var programs = map[string]program{
	"true":  {operands: anything},
	"false": {operands: anything},
	"pwd":   {options: options{flags: "LP", long: "logical physical"}},
	"sleep": {operands: anything},
	"tr":    {options: options{flags: "cCdst", long: "complement delete squeeze-repeats truncate-set1"}, operands: anything, most: 2},
	"basename": {
		options:  options{flags: "az", values: "s", long: "multiple zero suffix="},
		operands: anything,
	},
	"dirname": {options: options{flags: "z", long: "zero"}, operands: anything},
	"env":     {options: options{flags: "0", long: "null"}},
	"echo":    {check: (*reader).echo},
	"printf":  {check: (*reader).printf},
	"test":    {check: (*reader).bracket},
	"[":       {check: (*reader).bracket},
	"cd":      {check: (*reader).changeDir},
	"date":    {check: (*reader).date},
	"cat": {
		options:  options{flags: "AbeEnstTuv", long: "show-all number-nonblank show-ends number squeeze-blank show-tabs show-nonprinting"},
		operands: paths,
	},
	"ls": {
		options: options{
			flags: "aAbBcCdfFgGhHiklLmnNopqQrRsStuUvxXZ1", values: "ITw",
			long: `all almost-all author block-size= color color= directory dereference escape file-type format= full-time group-directories-first
				hide= human-readable hyperlink ignore= ignore-backups indicator-style= inode kibibytes literal no-group numeric-uid-gid
				quote-name quoting-style= recursive reverse show-control-chars si size sort= tabsize= time= time-style= width= zero classify classify=`,
		},
		operands: paths,
	},
	"tree": {
		options:  options{flags: "adfxlipsDhugQNnCcvtUrFqJX", values: "LIP", apart: true, long: "noreport dirsfirst filelimit= prune gitignore si du sort= matchdirs ignore-case"},
		operands: paths,
	},
	"head": {
		options:  options{flags: "qvz", values: "nc", long: "lines= bytes= quiet silent verbose zero-terminated", numbers: true},
		operands: paths,
	},
	"tail": {
		options:  options{flags: "qvz", values: "nc", long: "lines= bytes= quiet silent verbose zero-terminated", numbers: true},
		operands: paths,
	},
	"wc":   {options: options{flags: "clmLw", long: "bytes chars lines max-line-length words total="}, operands: paths},
	"uniq": {options: options{flags: "cdDiuz", values: "fsw", long: "count repeated all-repeated all-repeated= group group= ignore-case unique skip-fields= skip-chars= check-chars= zero-terminated"}, operands: paths, most: 1},
	"cut": {
		options:  options{flags: "nsz", values: "bcdf", long: "bytes= characters= delimiter= fields= complement only-delimited output-delimiter= zero-terminated"},
		operands: paths,
	},
	"sort": {
		options: options{
			flags: "bCcdfghimMnRrsuVz", values: "kt",
			long: `ignore-leading-blanks dictionary-order ignore-case general-numeric-sort ignore-nonprinting month-sort human-numeric-sort numeric-sort
				random-sort reverse sort= version-sort check check= key= merge stable field-separator= unique zero-terminated parallel=`,
		},
		operands: paths,
	},
	"diff": {
		options: options{
			flags: "abBcdeEHinNpqrstTuwyZ", values: "CUWI",
			long: `normal brief report-identical-files context context= unified unified= ed rcs side-by-side width= left-column suppress-common-lines
				show-c-function expand-tabs tabsize= recursive new-file ignore-case ignore-tab-expansion ignore-space-change ignore-all-space
				ignore-blank-lines text minimal speed-large-files color color=`,
		},
		operands: paths,
	},
	"grep": {options: grepOptions, operands: patternPaths},
	"rg": {
		options: options{
			flags: "cFHiIlLnNopPqsSUuvVwxa0.", values: "ABCegjmMrtTE",
			long: `count count-matches fixed-strings with-filename ignore-case no-filename files-with-matches files-without-match line-number no-line-number
				only-matching pretty pcre2 quiet no-messages smart-case case-sensitive multiline multiline-dotall unrestricted invert-match word-regexp line-regexp
				text null hidden no-ignore no-ignore-vcs no-heading heading column no-column trim json stats files sort= sortr= vimgrep passthru
				after-context= before-context= context= regexp= glob= iglob= threads= max-count= max-columns= replace= type= type-not= encoding= color=
				max-depth= max-filesize= no-config no-require-git type-list byte-offset one-file-system follow crlf`,
		},
		operands: patternPaths,
	},
	"xargs": {options: options{flags: "0r", values: "dInP", long: "null no-run-if-empty"}, operands: nothing},
	"find":  {check: (*reader).find},
	"sed":   {check: (*reader).sed},
	"git":   {check: (*reader).git},
	"go":    {check: (*reader).golang},
}

//nolint:gochecknoglobals // a table
var grepOptions = options{
	flags: "EFGPivywxcLloqsbHhnTUzZaIrR", values: "emABC",
	long: `extended-regexp fixed-strings basic-regexp perl-regexp regexp= ignore-case no-ignore-case invert-match word-regexp line-regexp count
		color color= colour colour= files-without-match files-with-matches max-count= only-matching quiet silent no-messages byte-offset with-filename
		no-filename line-number initial-tab null after-context= before-context= context= text binary-files= exclude= exclude-dir= include=
		recursive dereference-recursive line-buffered null-data`,
	numbers: true,
}
