import { expect, it } from '@jest/globals';
import { dueInSeconds } from './tokens.js';

it.each([
  [36_000, 32_400],
  [3_600, 3_240],
  [600, 540],
  [300, 240],
  [120, 60],
  [60, 30],
  [10, 5],
])('a token of %d s is renewed after %d s', (life, expected) => {
  expect(dueInSeconds(life)).toBe(expected);
});
