import { afterEach, describe, expect } from '@jest/globals';
import { PinoLoggerService } from '../../../src/platform/telemetry/logger.js';
