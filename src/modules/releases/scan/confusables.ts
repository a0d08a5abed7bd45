/** Letters of other scripts that are drawn like Latin ones: first as capitals, then as small letters. */
const CAPITALS = lookAlikes('АAВBЕEЅSІIЈJКKМMНHОOРPСCТTУYХXҮYԌGԚQԜWҺH', 'ΑAΒBΕEΖZΗHΙIΚKΜMΝNΟOΡPΤTΥYΧX', 'ՍUՏSՕO');
const SMALL = lookAlikes(
  'аaвbеeѕsіiјjкkмmнhоoрpсcтtуyхxүyһhԁdԛqԝwѵvӏl',
  'αaβbεeηnιiκkνvοoρpτtυuχxγyωw',
  'օoսuոnհhցgզqɑaɡgɩiıi',
);

const CHARS_MAX = 256;

/**
 * The skeleton of a name (compare UTS 39): compatibility forms (`ｓｅａｒｃｈ`), case, accents, invisible characters and
 * look-alikes of Cyrillic, Greek and Armenian are folded. Two tools must not share one. Digits stay apart
 * from letters (`v10`, `vlO`): servers use both, and nobody has to read another script to tell them.
 */
export function confusableSkeleton(name: string): string {
  const plain = name
    .slice(0, CHARS_MAX)
    .normalize('NFKD')
    .replace(/[\p{M}\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}]/gu, '');
  const latin = [...plain].map((char) => CAPITALS.get(char) ?? char).join('');
  return [...latin.toLowerCase()].map((char) => SMALL.get(char) ?? char).join('');
}

/** Pairs of a letter and the Latin one it looks like. */
function lookAlikes(...rows: string[]): ReadonlyMap<string, string> {
  const pairs = new Map<string, string>();
  for (const row of rows) {
    for (let at = 0; at + 1 < row.length; at += 2) pairs.set(row[at], row[at + 1]);
  }
  return pairs;
}
