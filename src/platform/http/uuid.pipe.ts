import type { PipeTransform } from '@nestjs/common';
import { isUUID } from 'class-validator';
import type { DomainError } from '../errors/domain-error.js';

/** A parameter that holds a uuid: anything else cannot exist, so it answers as missing and never reaches Postgres. */
export function UuidOr404(missing: new () => DomainError): PipeTransform<string, string> {
  return {
    transform(value) {
      if (!isUUID(value)) throw new missing();
      return value;
    },
  };
}
