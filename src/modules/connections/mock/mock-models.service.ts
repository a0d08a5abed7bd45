import { Injectable } from '@nestjs/common';
import type { MockModelProvider } from './simulator/model-simulator.js';

/** The language model of mocks in this process. @stability preview */
@Injectable()
export class MockModels {
  /** Null without a module that provides one: schemas answer. */
  provider: MockModelProvider | null = null;
}
