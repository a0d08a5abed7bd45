interface ModelInstruction {
  words: string;
  /** The problem, which follows "It says "…":" in the message. */
  problem: string;
}

/** Separator of words, which shares no character with a word, so that a search stays linear. */
const gap = '[^\\w]+';
const upToWords = (max: number) => `(?:${gap}\\w+){0,${max}}?${gap}`;

const phrase = (...parts: string[]) => new RegExp(`\\b${parts.join('')}\\b`, 'i');

/** Patterns of known attacks. Other words and other languages are not recognized. */
const patterns: { pattern: RegExp; problem: string }[] = [
  {
    pattern: /<\s?(?:important|system|secret|hidden|assistant|admin)\s?>/i,
    problem: 'such a tag speaks to the model, and people read past it',
  },
  {
    pattern: phrase(
      `(?:ignore|disregard|forget|override)${upToWords(3)}`,
      `(?:(?:previous|prior|earlier|above|other)${upToWords(1)}(?:instructions?|prompts?|rules|guidelines)`,
      `|system${gap}prompts?|your${gap}(?:instructions|guidelines))`,
    ),
    problem: 'it tells the model to set other instructions aside',
  },
  {
    pattern: phrase(
      `(?:do not|don['’]t|must not|should not|never|without)${gap}`,
      `(?:mention|tell|inform|notify|alert|reveal|disclose)(?:ing)?${upToWords(3)}`,
      '(?:users?|humans?|anyone|anybody|it|this|that|them)',
    ),
    problem: 'it tells the model to keep something from its user',
  },
  {
    pattern: phrase(
      `(?:read|open|cat|load|send|pass|include)${upToWords(5)}`,
      `(?:(?<=\\.)(?:ssh|aws|gnupg|kube|netrc)|id_(?:rsa|ed25519|ecdsa)|(?<=/)etc/(?:passwd|shadow))`,
    ),
    problem: 'it tells the model to read a file of secrets',
  },
  {
    pattern: phrase(
      `(?:send|forward|upload|append|include|pass)${upToWords(3)}`,
      `(?:(?:conversation|chat)${gap}history|system${gap}prompt)`,
    ),
    problem: 'it asks for the conversation or the system prompt',
  },
];

export function modelInstructions(text: string): ModelInstruction[] {
  return patterns.flatMap(({ pattern, problem }) => {
    const [words] = pattern.exec(text) ?? [];
    return words === undefined ? [] : [{ words, problem }];
  });
}
