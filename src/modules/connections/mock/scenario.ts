import { parseFixture, type Fixture } from './simulator/fixture.js';

/** A scenario by its kind. */
export type Scenario =
  | { kind: 'none' }
  /** `replay:{connectionId}`: a recording of that connection. */
  | { kind: 'replay'; connectionId: string }
  | { kind: 'fixture'; fixture: Fixture }
  /** Any other text: the language model reads it. */
  | { kind: 'prose' };

/** @throws InvalidInputError for a broken fixture */
export function readScenario(text: string | null | undefined): Scenario {
  if (text === null || text === undefined || text.trim() === '') return { kind: 'none' };
  const replayed = /^replay:(.*)$/s.exec(text)?.[1];
  if (replayed !== undefined) return { kind: 'replay', connectionId: replayed.trim() };
  const fixture = parseFixture(text);
  return fixture ? { kind: 'fixture', fixture } : { kind: 'prose' };
}
