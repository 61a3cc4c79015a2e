/* Prints the header's layout, a name and a number of bytes a line. */
#include <stddef.h>
#include <stdio.h>

#include "sluice.h"

#define SIZE(name, type) printf(name " %zu\n", sizeof(type))
#define FIELD(name, type, field) printf(name "." #field " %zu\n", offsetof(type, field))

int main(void) {
    printf("version %d\n", SLUICE_ABI_VERSION);
    SIZE("gate", sluice_gate_row);
    FIELD("gate", sluice_gate_row, ready);
    FIELD("gate", sluice_gate_row, arrival);
    FIELD("gate", sluice_gate_row, writers);
    SIZE("fault", sluice_fault_row);
    FIELD("fault", sluice_fault_row, foreign);
    FIELD("fault", sluice_fault_row, last);
    FIELD("fault", sluice_fault_row, extra);
    SIZE("handle", sluice_handle);
    FIELD("handle", sluice_handle, version);
    FIELD("handle", sluice_handle, chunks);
    FIELD("handle", sluice_handle, rank);
    FIELD("handle", sluice_handle, round);
    FIELD("handle", sluice_handle, gates);
    FIELD("handle", sluice_handle, world);
    FIELD("handle", sluice_handle, first);
    FIELD("handle", sluice_handle, own);
    FIELD("handle", sluice_handle, tables);
    FIELD("handle", sluice_handle, faults);
    FIELD("handle", sluice_handle, trace);
    SIZE("chunk", sluice_chunk);
    FIELD("chunk", sluice_chunk, writers);
    FIELD("chunk", sluice_chunk, owner);
    return 0;
}
