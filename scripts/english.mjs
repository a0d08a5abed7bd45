#!/usr/bin/env node
// Finds text that is not idiomatic technical English: comments of src and migrations, error and page strings, test names, docs.
// Run in the project's root. `--files a b` prints every hit of these files with its line; `--json`; `--max N` exits 1 above N hits;
// `--sample N [seed]` prints N random hits. The advice of a rule is what to write instead.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';

// c comments, s strings, t test names, d documentation. A space in a pattern matches any white space. START: the start of a sentence.
const START = String.raw`(?<=^\s*|[.!?;:]\s+|\n[ \t]*\n\s*|\n\s*(?:[-*#>|]|\d+\.)+\s*|\|\s*)`;
const DET =
  '(?:the|a|an|its?|his|their|your|all|every|each|any|no|that|this|these|those|them|what|one|other|both|open|running|some)';
const HELD =
  '(?:grants?|logins?|sessions?|uplinks?|tunnels?|leases?|links?|keys?|invitations?|tokens?|subscriptions?|roles?|memberships?|programs?|process(?:es)?|connections?|calls?|search|scan|browsers|clients|account|it|they)';
const RULES = [
  [
    'is-no',
    'csd',
    String.raw`(?<!\b[Tt]here (?:may |can |must |will |should )?|\bhere )\b(?:is|are|was|were|be) no (?!longer|more\b|less|different|later|earlier|other way)[a-zA-Z]`,
    'negate the verb: "is not a …", "has no …"',
  ],
  ['is-none', 'cstd', String.raw`\b(?<!\bthere )(?:is|are|was|were) none\b(?! of)`, '"is not one", "does not exist"'],
  [
    'headless-who',
    'csd',
    String.raw`${START}Who(?:ever)? [a-z](?:(?!\n\s*\n)[^?.!|])*[.,;]|\b(?:to|of|for|by|from|with|as|than|that|and|or|lets?|but) who [a-z]|\b(?:from|by|of|as) whom (?:the|a|an|its|it|they|he|she)\b`,
    'name the person: "the owner", "callers that …", "anyone who …"',
  ],
  [
    'headless-what',
    'cd',
    String.raw`${START}What (?!to |happen|if |else |about |now|this |does )[a-z](?:(?!\n\s*\n)[^?.|])*[.;]`,
    'begin with the noun: "Rejected requests …", "The rights of …"',
  ],
  [
    'headless-mid',
    'csd',
    String.raw`\b(?:of|for|to|with|from|by|like|as|beside|on|end|ends|and) what (?:is|was|were|has|had|may|waits|comes|stays|counts|they|others|somebody|an? (?:person|account|caller)|the (?:person|caller|account|owner))\b`,
    'name the noun: "the grant", "the stored headers", "open streams"',
  ],
  [
    'of-fronted',
    'csd',
    String.raw`${START}Of (?!course)[a-z]|[,;] but of (?:a|an|the|all|each|one)\b`,
    'subject first: "For pages, …", "If a server …"',
  ],
  [
    'end-transitive',
    'cstd',
    String.raw`\b(?:is|are|was|were|be|been|being|gets?) ended\b|\b(?:ends|ended|[Ee]nd|ending|Ends) (?:${DET}\b|(?:sessions|streams|logins|grants|programs|work)\b)(?! of)`,
    'the verb of the event: revoke, close, cancel, expire, stop, delete',
  ],
  [
    'end-subject',
    'csd',
    String.raw`\b${HELD} (?:then |also |all |both |only |that |never )?(?:ends?|ended)\b(?! (?:with|in) [x"'])`,
    'expires, is revoked, is closed, stops, exits',
  ],
  [
    'stands',
    'cstd',
    String.raw`\b(?:stands?|stood)\b(?! (?:for|alone|out|still|in for))`,
    'is stored, is listed, is shown, appears, or "is"',
  ],
  [
    'counts',
    'csd',
    String.raw`\bcounts? (?:in all|at once|always|instead|everywhere|also|once|from (?!1)|only|no more|not|for (?:all|both|every)|until|while|if|when|unless)\b|\bcounts? as (?:one|none|if)\b`,
    'applies, takes effect, is used',
  ],
  ['for-ever', 'cstd', String.raw`\bfor ever\b|\bfor good\b`, 'permanently, indefinitely, "never expires"'],
  ['anew', 'cstd', String.raw`\banew\b|\bonce more\b`, 'again'],
  ['mend', 'cstd', String.raw`\bmend(?:s|ed|ing)?\b`, 'fix, repair'],
  ['beside', 'cstd', String.raw`\b[Bb]eside\b`, 'next to, alongside, in addition to, besides'],
  [
    'leads-on',
    'csd',
    String.raw`\b(?:leads?|led|leading|goes|went|going|works?) on\b(?! (?:to|the|a|an|its|this|that|every|each|x))`,
    'redirects, forwards, continues',
  ],
  [
    'told',
    'cstd',
    String.raw`\b(?:is|are|was|were|be|been|being|not) told\b(?! to\b)|\b(?:tells?|telling) (?:of|that|what|so|whether|who)\b`,
    'receives, is notified, reports, indicates',
  ],
  [
    'asked',
    'csd',
    String.raw`\b(?:is|are|was|were|be|been|being) asked\b(?! (?:to|for))|\basks? (?:none|nobody|nothing|it again|by|the (?:rule|database|server|upstream|host|owner's))\b`,
    'is queried, is called, requests, is prompted',
  ],
  [
    'let-in',
    'cstd',
    String.raw`\b[Ll]et(?:s|ting)?(?: (?!(?:log|sign|listen|opt|fill|be)\b)\w+){0,3} in\b(?! (?:the|a|an|this|that|one|which|time))|\bwas let in\b`,
    'authorize, grant access, allow',
  ],
  [
    'thing',
    'cstd',
    String.raw`(?<!\b(?:[Tt]wo|[Tt]hree|different|same|one|such|other|everyday|these) )\bthings?\b`,
    'name it: server, connection, resource, target',
  ],
  ['door', 'cstd', String.raw`\bdoors?\b`, 'interface, endpoint'],
  ['maker', 'cstd', String.raw`\bmakers?\b`, 'creator, issuer, developer'],
  ['stranger', 'cstd', String.raw`\bstrangers?\b`, 'unauthenticated client'],
  ['withdraw', 'cstd', String.raw`\b[Ww]ithdr(?:aws?|awn|ew|awals?|awing)\b`, 'revoke (grant), undo (verification)'],
  ['may-not', 'csd', String.raw`\bmay not\b`, '"cannot", "must not" or "might not", whichever is meant'],
  ['away', 'cstd', String.raw`\b(?:is|are|was|were|be) away\b|\bwhile away\b`, 'unavailable, unreachable, down'],
  ['gone', 'cstd', String.raw`\b(?:is|are|was|were) gone\b`, 'no longer exists, was deleted'],
  [
    'make-create',
    'cstd',
    String.raw`\b[Mm]a(?:kes?|de) (?:(?:a|an|the|no|its|new|another|more|all|every|each|only|any|one) ){0,2}(?:keys?|accounts?|connections?|namespaces?|links?|invitations?|sessions?|grants?|logins?|tokens?|releases?|handles?|jobs?)\b(?!-| (?:public|private|an operator|unreadable|useless))`,
    'create, issue (key, token), open (session)',
  ],
  [
    'answer',
    'cstd',
    String.raw`\banswers? (?:x|\d{3}|with|like|as)\b|\b(?:is|are|was|were|be) answered\b|\b(?:the|an|its|their|each|every|whole|first|last|no|this|any) answers?\b`,
    'response (noun); returns, responds with (verb)',
  ],
  ['fault', 'cstd', String.raw`\b[Ff]aults?\b`, 'error, problem, invalid field'],
  [
    'also-even',
    'csd',
    String.raw`, also (?:if|when|where|while|after|before|in|of|for|by|through|at|to|what|those|without|from|over|during)\b`,
    '"even if …", "including …"',
  ],
  ['any-more', 'cstd', String.raw`\bany more\b`, 'no longer'],
  [
    'is-over',
    'cstd',
    String.raw`\b(?:is|are|was|were) over\b(?! (?:a|an|the|its|their|x|\d))`,
    'has ended, has expired, has elapsed',
  ],
  [
    'postposed',
    'csd',
    String.raw`\b(?:\d[\d,.]*|one|two|three|four|five|ten|a|an)(?: \w+){0,2} at (?:most|least)(?=[.,;:)|]| \(|\s*$)`,
    'before the noun: "at most 16 filters", "at least one tool"',
  ],
  [
    'of-ours',
    'cstd',
    String.raw`\bof (?:ours|yours|mine|theirs|hers)\b|\bof (?:before|above|now|elsewhere|then)\b`,
    '"our", "your", "earlier"',
  ],
  [
    'says-so',
    'csd',
    String.raw`\bsa(?:ys?|id|ying) so\b|\bin (?:its|their|own|plain|whole)? ?words\b`,
    'reports it, explains why, as text',
  ],
  [
    'looks-missing',
    'csd',
    String.raw`\blooks? (?:missing|as if it did not exist|like (?:a |one )?(?:missing|that does not))|\banswered like\b`,
    'returns 404',
  ],
  ['nothing-else', 'csd', String.raw`\band nothing else\b(?! (?:runs|changes|is))|\bnothing but\b`, 'only'],
  ['at-once', 'cstd', String.raw`\bat once\b`, '"immediately" or "concurrent", whichever is meant'],
  [
    'below-path',
    'cstd',
    String.raw`\bbelow (?:x|\/|the (?:package|path|folder|root|run|data|prefix)|its (?:path|run|folder))`,
    'under',
  ],
  [
    'a-text',
    'csd',
    String.raw`\b(?:a|another|each|one|every|any|other) text\b(?! (?:file|block|content|field|search|message|body|frame|column|form|node|item|value|area|is\b))|\b[Tt]exts\b`,
    '"a string", "a message", "content"',
  ],
  [
    'sentence',
    'csd',
    String.raw`(?<!\b(?:end|beginning|start|word) of )\b(?:a|the|with|in|as|by|its|whose|one|and) sentences?\b`,
    'message, reason, explanation',
  ],
  [
    'test-fragment',
    't',
    String.raw`^(?:of|and|by|for|to|whose|that|which|from|or|nor|but) `,
    'start with a verb in the present tense',
  ],
].map(([id, kinds, source, advice]) => ({
  id,
  kinds,
  advice,
  pattern: new RegExp(source.replaceAll(' ', '\\s+'), 'g'),
}));

const blank = (text) => text.replace(/[^\n]/g, ' '),
  code = (text) => text.replace(/[^\n]/g, 'x');
const prose = (text) =>
  text
    .replace(/`[^`\n]+`/g, code)
    .replace(/\{@link [^}]*\}/g, code)
    .replace(/https?:\S+/g, code);

const SIMPLE = /\/\*[\s\S]*?\*\/|\/\/[^\n]*(?:\n[ \t]*\/\/[^\n]*)*|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"/y;
const REGEX = /\/(?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[dgimsuvy]*/y;
const CHUNK = /(?:[^`\\$]|\\[\s\S]|\$(?!\{))*/y;
/** The comments and strings of TypeScript, each with its offset; an expression in a template is blanked with x. */
function tokens(text) {
  const at = (pattern, index) => ((pattern.lastIndex = index), pattern.exec(text)?.[0]);
  let [found, templates, braces, last] = [[], [], 0, '('];
  for (let i = 0, token; i < text.length; i += token.length) {
    const top = templates.at(-1);
    if (top?.isText) {
      top.text += token = at(CHUNK, i);
      i += 1;
      if (text[i - 1 + token.length] === '$')
        Object.assign(top, { isText: false, braces, from: i++ - 1 + token.length });
      else
        [found[found.length], last] = [{ raw: `\`${templates.pop().text}\``, index: top.index, isString: true }, '`'];
      continue;
    }
    token = at(SIMPLE, i) ?? (text[i] === '/' && /[(,=:?&|![{};>\n]/.test(last) ? at(REGEX, i) : undefined) ?? text[i];
    const isComment = /^\/[*/]/.test(token) && token.length > 2;
    if (isComment || /^['"]./.test(token)) found.push({ raw: token, index: i, isComment, isString: !isComment });
    else if (token === '`') templates.push({ index: i, text: '', isText: true });
    else if (token === '}' && top && braces === top.braces)
      Object.assign(top, { isText: true, text: top.text + 'x'.repeat(i + 1 - top.from) });
    else if (token === '{' || token === '}') braces += token === '{' ? 1 : -1;
    if (!isComment && /\S/.test(token)) last = token.length > 1 && token[0] === '/' ? 'r' : token.at(-1);
  }
  return found.sort((a, b) => a.index - b.index);
}
const commentText = (raw) =>
  prose(
    raw
      .replace(/^\/\*+|\*\/$|^[ \t]*\/\/|^[ \t]*\*+/gm, blank)
      .replace(/@(?:param \w+|returns|throws [\w, {}]+|example[^\n]*|see)/g, (tag) => blank(tag).replace(/ $/, '\n'))
      .replace(/eslint-disable[^\n]*?(?=--|$)/gm, blank),
  );
const stringText = (raw) =>
  prose(
    raw
      .slice(1, -1)
      .replace(/\$\{(?:[^{}]|\{[^{}]*\})*\}/g, code)
      .replace(/<[^>]*>/g, blank),
  );
const isProse = (text) =>
  !/[{;]\s*[\w-]+:\s|^\s*[.#@]?[\w-]+\s*\{/.test(text) &&
  /[a-z]{2,} [a-z]{1,}/i.test(text) &&
  !/\b(?:SELECT|INSERT|UPDATE|DELETE FROM|WHERE|CREATE|ALTER|jsonb|coalesce)\b|=>|::|\bAND\b/.test(text) &&
  text.split(/\s+/).length > 2;
const CALL =
  /(?:\b(?:it|test|describe|verifies|longVerifies|longIt)(?:\.(?:each|only|skip|failing))?(?:<[^()]*>)?\(|[\])]\)\()\s*$/;
const ID_FIRST = /\b(?:verifies|longVerifies)\(\s*'[^']*',\s*$/;

function segments(file, text) {
  if (file.endsWith('.md'))
    return [
      {
        kind: 'd',
        index: 0,
        text: prose(
          text
            .replace(/^```[\s\S]*?^```/gm, blank)
            .replace(/<!--[\s\S]*?-->/g, blank)
            .replace(/\]\([^)\n]*\)/g, blank),
        ).replace(/[\][]/g, ' '),
      },
    ];
  const isTest = /\.(?:e2e-)?spec\.ts$/.test(file);
  return tokens(text).flatMap(({ raw, index, isComment, isString }) => {
    if (isComment) return isTest ? [] : [{ kind: 'c', index, text: commentText(raw) }];
    if (!isString) return [];
    const before = text.slice(Math.max(0, index - 200), index);
    if (isTest)
      return (CALL.test(before) || ID_FIRST.test(before)) && !/^.[\w-]+:[\w:-]+.$/.test(raw)
        ? [{ kind: 't', index: index + 1, text: stringText(raw) }]
        : [];
    const inner = stringText(raw);
    return /\bimport\b[^;]*$|\bfrom\s*$/.test(before.slice(-60)) || !isProse(inner)
      ? []
      : [{ kind: 's', index: index + 1, text: inner }];
  });
}

const args = process.argv.slice(2);
const option = (name) => (args.includes(name) ? args[args.indexOf(name) + 1] : undefined);
const only = args.includes('--files')
  ? args.slice(args.indexOf('--files') + 1).filter((a) => !a.startsWith('--'))
  : null;
const tracked = () =>
  execFileSync('git', ['ls-files', 'src', 'migrations', 'docs', 'test', '*.md'], {
    encoding: 'utf8',
    maxBuffer: 1 << 26,
  }).split('\n');
const files =
  only ??
  tracked().filter((f) =>
    /^(?:src|migrations)\/.*\.ts$|^test\/(?!vendor).*spec\.ts$|^docs\/(?!contributing\/language).*\.md$|^(?:README|CONTRIBUTING|SECURITY|CHANGELOG)\.md$/.test(
      f,
    ),
  );
const [hits, sum] = [
  [],
  {
    codeLines: 0,
    commentWords: 0,
    comments: 0,
    strings: 0,
    testNames: 0,
    docsPages: 0,
    docsWords: 0,
    docsSentences: 0,
    proseWords: 0,
    longHeaders: 0,
  },
];
const words = (text) => (text.match(/[A-Za-z][\w'-]*/g) ?? []).length;
for (const file of files.filter((f) => existsSync(f))) {
  const text = readFileSync(file, 'utf8');
  const isSource = /^(?:src|migrations)\//.test(file) && !file.endsWith('.spec.ts');
  const found = segments(file, text);
  if (isSource) {
    const rest = found
      .filter(({ kind }) => kind === 'c')
      .reduce(
        (t, { index, text: c }) =>
          t.slice(0, index) + blank(text.slice(index, index + c.length)) + t.slice(index + c.length),
        text,
      );
    sum.codeLines += rest.split('\n').filter((line) => line.trim() !== '').length;
    if (/^\/\*\*[\s\S]*?\*\//.exec(text)?.[0].split('\n').length > 14) sum.longHeaders += 1;
  }
  for (const { kind, index, text: segment } of found) {
    if (kind === 'c' && isSource)
      [sum.comments, sum.commentWords] = [sum.comments + 1, sum.commentWords + words(segment)];
    if (kind === 's' || kind === 't') sum[kind === 's' ? 'strings' : 'testNames'] += 1;
    if (kind === 'd') {
      const plain = segment.replace(/^\s*\|.*$|^#.*$/gm, '');
      [sum.docsPages, sum.docsWords, sum.docsSentences] = [
        sum.docsPages + 1,
        sum.docsWords + words(segment),
        sum.docsSentences + plain.split(/[.!?:](?=\s)/).filter((s) => words(s) > 2).length,
      ];
      sum.proseWords += words(plain);
    }
    for (const { id, kinds, pattern } of RULES) {
      if (!kinds.includes(kind)) continue;
      for (const match of segment.matchAll(pattern)) {
        const at = index + match.index;
        hits.push({
          rule: id,
          kind,
          file,
          line: text.slice(0, at).split('\n').length,
          text: text.slice(Math.max(0, at - 45), at + match[0].length + 45).replace(/\s*\n\s*(?:\*|\/\/)?\s*/g, ' '),
          match: match[0].replace(/\s+/g, ' '),
        });
      }
    }
  }
}
const operations =
  existsSync('dist/openapi/openapi.json') && !only
    ? Object.values(JSON.parse(readFileSync('dist/openapi/openapi.json', 'utf8')).paths)
        .flatMap((path) => Object.values(path))
        .filter(({ summary }) => summary?.length > 60).length
    : 0;
const tally = (key, list = hits) =>
  Object.entries(list.reduce((n, hit) => ({ ...n, [hit[key]]: (n[hit[key]] ?? 0) + 1 }), {})).sort(
    (a, b) => b[1] - a[1],
  );
const kindNames = { c: 'inComments', s: 'inStrings', t: 'inTestNames', d: 'inDocs' };
const figures = {
  hits: hits.length,
  ...Object.fromEntries(tally('kind').map(([k, n]) => [kindNames[k], n])),
  codeLines: sum.codeLines,
  commentWords: sum.commentWords,
  commentWordsPerCodeLine: +(sum.commentWords / sum.codeLines).toFixed(2),
  wordsPerComment: +(sum.commentWords / sum.comments).toFixed(1),
  headersOver12Lines: sum.longHeaders,
  stringsRead: sum.strings,
  testNamesRead: sum.testNames,
  summariesOver60: operations,
  docsPages: sum.docsPages,
  docsWords: sum.docsWords,
  docsWordsPerPage: Math.round(sum.docsWords / sum.docsPages),
  meanSentenceWords: +(sum.proseWords / sum.docsSentences).toFixed(1),
};
if (args.includes('--json'))
  console.log(
    JSON.stringify(
      { figures, rules: Object.fromEntries(tally('rule')), files: Object.fromEntries(tally('file')), hits },
      null,
      1,
    ),
  );
else if (only) {
  for (const { file, line, rule, text } of hits) console.log(`${file}:${line} ${rule}: …${text}…`);
  for (const [id] of tally('rule')) console.log(`  ${id}: ${RULES.find((rule) => rule.id === id).advice}`);
  console.log(`${hits.length} hits`);
} else if (args.includes('--sample')) {
  let seed = Number(args[args.indexOf('--sample') + 2] ?? 1) || 1;
  const random = () => (seed = (seed * 1664525 + 1013904223) % 4294967296) / 4294967296;
  const pool = option('--rule') ? hits.filter(({ rule }) => rule === option('--rule')) : hits;
  for (const hit of pool
    .map((h) => [random(), h])
    .sort((a, b) => a[0] - b[0])
    .slice(0, Number(option('--sample'))))
    console.log(`${hit[1].rule} [${hit[1].kind}] ${hit[1].file}:${hit[1].line} <${hit[1].match}> …${hit[1].text}…`);
} else {
  for (const [id, count] of tally('rule'))
    console.log(`${String(count).padStart(5)}  ${id.padEnd(15)} ${RULES.find((rule) => rule.id === id).advice}`);
  console.log('\nworst files');
  for (const [file, count] of tally('file').slice(0, 20)) console.log(`${String(count).padStart(5)}  ${file}`);
  console.log('');
  console.table(figures);
}
if (args.includes('--max') && hits.length > Number(option('--max'))) process.exitCode = 1;
