import { runInThisContext } from 'node:vm';

/** Schema that a pasted Zod expression makes. */
export interface PastedSchema {
  safeParse(value: unknown): { success: boolean };
}

/** Evaluates an expression as a program does that knows `z` and nothing else. */
export function pasted(expression: string, z: unknown): PastedSchema {
  const program = runInThisContext(`'use strict'; (z) => ${expression}`) as (library: unknown) => PastedSchema;
  return program(z);
}
