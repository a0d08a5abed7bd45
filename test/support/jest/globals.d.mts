/** `it` of a test that only `npm run test:long` runs, although others of its file belong to `npm test`. */
export declare function longIt(name: string, fn: () => void | Promise<void>, timeoutMs?: number): void;
/** `it` of a test that runs in the project `alone`, of which one file runs at a time: it promises a wall-clock time, or kills. */
export declare function aloneIt(name: string, fn: () => void | Promise<void>, timeoutMs?: number): void;
