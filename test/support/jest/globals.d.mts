/** `it` of a test that only `npm run test:long` runs, although others of its file belong to `npm test`. */
export declare function longIt(name: string, fn: () => void | Promise<void>, timeoutMs?: number): void;
