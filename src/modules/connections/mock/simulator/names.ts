/** The words of a name in lower case: `createPullRequest`, `create-pull_request` and `create.pull/request` have the same. */
export function wordsOf(name: string): string[] {
  return name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replace(/([A-Z])([A-Z][a-z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== '');
}

/** What names are compared by: `issueNumber` and `issue_number` are the same. */
export function plainName(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '');
}

const irregular: Record<string, string> = {
  people: 'person',
  children: 'child',
  men: 'man',
  women: 'woman',
  mice: 'mouse',
  indices: 'index',
  matches: 'match',
  branches: 'branch',
  searches: 'search',
  addresses: 'address',
  statuses: 'status',
  aliases: 'alias',
  databases: 'database',
  releases: 'release',
};

/** Words that end like a plural and are none. */
const SINGULAR = /(ss|us|is|news|series|ics|sms|dns|https|aws|ios)$/;

/** One of them: `issues` is `issue`, `entries` is `entry`. */
export function singular(word: string): string {
  if (Object.hasOwn(irregular, word)) return irregular[word];
  if (word.length < 3 || SINGULAR.test(word) || !word.endsWith('s')) return word;
  if (word.endsWith('ies') && word.length > 4) return `${word.slice(0, -3)}y`;
  if (/(x|z|ch|sh|ss)es$/.test(word)) return word.slice(0, -2);
  return word.slice(0, -1);
}

/** Whether a word speaks of several. */
export function isPlural(word: string): boolean {
  return singular(word) !== word;
}

/** Several of them, for texts. */
export function plural(word: string): string {
  const known = Object.entries(irregular).find(([, one]) => one === word)?.[0];
  if (known !== undefined) return known;
  if (/[^aeiou]y$/.test(word)) return `${word.slice(0, -1)}ies`;
  return /(s|x|z|ch|sh)$/.test(word) ? `${word}es` : `${word}s`;
}
