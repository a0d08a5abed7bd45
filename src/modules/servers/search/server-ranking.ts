/**
 * The SQL that finds and scores servers for a search text, best first, with scores from 0 to 1.
 *
 * A server whose name or display name equals the text scores 1. One that has all the words scores 0.35 to 0.99: more
 * for words in its name than in its display name, description and tools (weights A to D), slightly more the more it is
 * used. The last word can be incomplete. With `some words`, servers that have one of the words, or a similar one in
 * their names (trigrams), follow with less than 0.35.
 *
 * Only a limited number of hits is scored, so that a common word costs no more than a rare one. Both limits are in the
 * statement, because the planner alone walked through all servers for two words that rarely occur together (360 ms
 * instead of 1). Every part applies the filters itself: excluded servers must not use up a limit.
 */
import { parseQualifiedName } from '../server.types.js';
import type { SqlValues } from './server-filters.js';

/** Maximum number of words; further words are ignored. Each word takes an index scan in a search for similar words. */
const WORDS_MAX = 8;

/** Number of the most used hits of each kind that are ranked, and of the most used servers that are checked one by one. */
const RANKED_MAX = 1_000;

/** Number of hits among which the most used ones are selected. */
const HITS_MAX = 10_000;

export interface Searched {
  whole: string;
  /** Words of letters and digits only. */
  words: string[];
}

/** Splits the text of a search. A text without words matches nothing. */
export function searchedFor(q: string): Searched {
  const text = q.trim().replace(/^@/, '').toLowerCase();
  return { whole: text, words: (text.match(/[\p{L}\p{M}\p{N}]+/gu) ?? []).slice(0, WORDS_MAX) };
}

/** Returns a query with the columns `id` and `score`. @param conditions on `servers s`, whose values are already in `values` */
export function rankingOf(
  { whole: text, words }: Searched,
  mode: 'all words' | 'some words',
  conditions: string,
  values: SqlValues,
  limit: number,
): string {
  const quoted = words.map((word) => `'${word}'`);
  const typed = values.add(text);
  const { namespace, name } = parseQualifiedName(text);
  const inNamespace = `s.namespace_id = (SELECT id FROM namespaces WHERE name = ${values.add(namespace)})`;
  const exact = [
    `lower(s.name) = ${typed}`,
    `lower(s.display_name) = ${typed}`,
    `(${inNamespace} AND lower(s.name) = ${values.add(name)})`,
  ];
  const all =
    `(to_tsquery('simple', ${values.add(quoted.length > 0 ? `${quoted.join(' & ')}:*` : '')}) ` +
    `|| plainto_tsquery('english', ${values.add(words.join(' '))}))`;
  const parts = [
    ...exact.map((condition) => hits(condition, conditions)),
    hits(`s.search_names @@ ${all}`, conditions),
    hits(`s.search @@ ${all}`, conditions),
    `(SELECT s.id FROM (SELECT s.id, s.search FROM servers s WHERE ${conditions} ${MOST_USED} LIMIT ${RANKED_MAX}) s
      WHERE s.search @@ ${all})`,
  ];
  const scores = [
    `CASE WHEN s.search @@ ${all} THEN least(0.99, 0.35 + ${rank(all)} + 0.0005 * s.popularity) ELSE 0 END`,
  ];
  if (mode === 'some words' && words.length > 0) {
    const some = `to_tsquery('english', ${values.add(quoted.join(' | '))})`;
    // Shorter words are similar to too many others.
    const similar = words.filter((word) => word.length > 2).map((word) => values.add(word));
    parts.push(
      hits(`s.search @@ ${some}`, conditions),
      // Comparing trigrams costs about 10 µs each.
      ...similar.map((word) => hits(`${word} <% s.search_words`, conditions, RANKED_MAX)),
    );
    const likeness = similar.map((word) => `word_similarity(${word}, s.search_words)`).join(' + ');
    scores.push(
      `CASE WHEN s.search @@ ${some} THEN 0.15 + 0.15 * ${rank(some)} ELSE 0 END ` +
        `+ 0.1 * (${likeness || 0}) / ${Math.max(1, similar.length)}`,
    );
  }
  const score = `CASE WHEN ${exact.join(' OR ')} THEN 1 ELSE greatest(${scores.join(', ')}) END`;
  return `SELECT s.id, round((${score})::numeric, 4)::float8 AS score FROM servers s
    WHERE s.id IN (${parts.join(' UNION ')})
    ORDER BY score DESC, s.popularity DESC, s.created_at DESC, s.id DESC LIMIT ${limit}`;
}

/** Returns a rank of 0 to 0.6, normalised so that long content with many hits does not outrank a name. */
function rank(query: string): string {
  return `1.2 * ts_rank('{0.1, 0.2, 0.5, 1}', s.search, ${query}, 32)`;
}

const MOST_USED = 'ORDER BY s.popularity DESC, s.created_at DESC, s.id DESC';

/** Returns the SQL of the most used hits, among at most {@link HITS_MAX} matches. */
function hits(condition: string, conditions: string, among = HITS_MAX): string {
  return `(SELECT s.id FROM (SELECT s.id, s.popularity, s.created_at FROM servers s
      WHERE ${condition} AND ${conditions} LIMIT ${among}) s ${MOST_USED} LIMIT ${RANKED_MAX})`;
}
