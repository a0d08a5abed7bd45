/** `TEST_SEED`, or a constant where it is not set. */
export declare const testSeed: number;
/** Returns a function that draws numbers from 0 up to 1. The same name and seed draw the same numbers. */
export declare function randomFrom(name: string, seed?: number): () => number;
/** Draws a number from 0 up to 1, of the running test file. */
export declare function drawNumber(): number;
