//go:build !race

#include "textflag.h"

// func streamRows(dst, src *byte, dstPitch, srcPitch, width, rows, ahead int64)
TEXT ·streamRows(SB), NOSPLIT, $0-56
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ dstPitch+16(FP), R8
	MOVQ srcPitch+24(FP), R9
	MOVQ width+32(FP), DX
	MOVQ rows+40(FP), CX
	MOVQ ahead+48(FP), R12
	MOVQ R12, R11
	IMULQ R9, R11

row:
	LEAQ    (SI)(R11*1), R10 // a row to come, which the processor does not foresee
	CMPQ    CX, R12
	CMOVQLE SI, R10          // there is none: this row is in the cache
	XORQ    AX, AX

line:
	PREFETCHNTA (R10)(AX*1)
	MOVOU      (SI)(AX*1), X0
	MOVOU      16(SI)(AX*1), X1
	MOVOU      32(SI)(AX*1), X2
	MOVOU      48(SI)(AX*1), X3
	MOVNTO     X0, (DI)(AX*1)
	MOVNTO     X1, 16(DI)(AX*1)
	MOVNTO     X2, 32(DI)(AX*1)
	MOVNTO     X3, 48(DI)(AX*1)
	ADDQ       $64, AX
	CMPQ       AX, DX
	JLT        line

	ADDQ R8, DI
	ADDQ R9, SI
	DECQ CX
	JNZ  row

	SFENCE // what is streamed comes before the signal
	RET
