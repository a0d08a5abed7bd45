/** An object of JSON whose members are somebody else's. */
export type Item = Record<string, unknown>;
